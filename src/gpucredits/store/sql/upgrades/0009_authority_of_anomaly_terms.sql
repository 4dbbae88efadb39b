-- Terms of unusual spending know the scope of the key that set them: an org's, for those there are.

ALTER TABLE anomaly_terms ADD COLUMN set_by smallint NOT NULL DEFAULT 1
    CONSTRAINT anomaly_terms_set_by CHECK (set_by BETWEEN 0 AND 3);
ALTER TABLE anomaly_terms ALTER COLUMN set_by DROP DEFAULT;
