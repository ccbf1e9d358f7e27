"""The Telegram Bot API, for bots that post in channels."""
