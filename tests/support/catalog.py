"""What a database is made of, as its catalog says it."""

from __future__ import annotations

from typing import Any

OURS = "current_schema()::regnamespace"
QUESTIONS = {
    "columns": f"""
        SELECT c.relname, string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
            CASE WHEN a.attnotnull THEN 'NOT NULL' END, a.attidentity, l.collname,
            pg_get_expr(d.adbin, d.adrelid)), ', ' ORDER BY a.attnum)
        FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        LEFT JOIN pg_collation l ON l.oid = a.attcollation AND l.collname <> 'default'
        WHERE c.relnamespace = {OURS} AND c.relkind IN ('r', 'v', 'c') GROUP BY c.relname""",
    "options": f"SELECT relname, reloptions::text FROM pg_class WHERE relnamespace = {OURS}",
    "constraints": f"""
        SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = {OURS} AND contype <> 'n'""",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()",
    "triggers": f"""
        SELECT t.tgrelid::regclass || '.' || t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t
        JOIN pg_class c ON c.oid = t.tgrelid
        WHERE c.relnamespace = {OURS} AND NOT t.tgisinternal""",
    "views": "SELECT viewname, definition FROM pg_views WHERE schemaname = current_schema()",
    "functions": f"""
        SELECT oid::regprocedure::text, pg_get_functiondef(oid) FROM pg_proc
        WHERE pronamespace = {OURS}""",
}


async def catalog(connection: Any) -> dict[str, dict[str, str]]:
    """Every table, constraint, index, trigger, view and function by its name."""
    return {
        name: dict(map(tuple, await connection.fetch(question)))
        for name, question in QUESTIONS.items()
    }
