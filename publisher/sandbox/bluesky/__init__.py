"""The AT Protocol as a personal data server speaks it: sessions, blobs, records."""
