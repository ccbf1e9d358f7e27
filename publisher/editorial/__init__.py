"""What editors do: channels, posts and their versions, media, imports."""
