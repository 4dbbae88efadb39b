"""Work that runs beside the requests, at its own pace; nothing is wrong while it has not run."""
