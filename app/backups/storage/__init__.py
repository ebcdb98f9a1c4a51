"""Backups at rest: encrypted objects in a folder or an S3 bucket, and the manifests that make backups of them.

A backup is a folder of objects, named after the backup:

    <backup>/key                            its key, sealed with HEADWATER_SECRET_KEYS
    <backup>/parts/<attempt>/00000000.zst.age   its dump, in parts: zstd, then age
    <backup>/manifest                       what it is, and each part's length and hash; written last, never replaced

What has no manifest is no backup. docs/decisions/0039 says why it is so.
"""
