"""The sandbox speaks the Bot API, which can post and not look."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from publisher.sandbox.process import SandboxProcess

from .conftest import until
from .senders import PNG, TelegramUnderTest

if TYPE_CHECKING:
    from pathlib import Path

    import httpx


def _error(response: httpx.Response) -> tuple[int, str]:
    body = response.json()
    assert (body["ok"], body["error_code"]) == (False, response.status_code)
    return response.status_code, body["description"]


def _result(response: httpx.Response) -> Any:  # noqa: ANN401  JSON
    assert (response.status_code, response.json()["ok"]) == (200, True)
    return response.json()["result"]


def test_a_message_is_posted(telegram: TelegramUnderTest) -> None:
    text = " Xin chào 👩‍👩‍👧‍👦 #tết https://example.org/x, @sandbox\n"
    made = _result(telegram.call("sendMessage", text=text))
    chat = {
        "id": int(telegram.id),
        "title": f"@{telegram.username}",
        "username": telegram.username,
        "type": "channel",
    }
    assert (made["message_id"], made["chat"], made["sender_chat"]) == (1, chat, chat)
    assert made["text"] == text.strip()
    units = [(it["type"], it["offset"], it["length"]) for it in made["entities"]]
    assert units == [("hashtag", 21, 4), ("url", 26, 21), ("mention", 49, 8)]
    assert telegram.logged[0].message == text
    assert _result(telegram.call("SENDMESSAGE", text="Next"))["message_id"] == 2
    named = telegram.call("sendMessage", chat_id=f"@{telegram.username.upper()}", text="By name")
    assert _result(named)["chat"] == chat


def test_a_message_is_posted_by_form_and_by_query(telegram: TelegramUnderTest) -> None:
    given = {"chat_id": telegram.id, "text": "a+b&c"}
    path = f"/bot{telegram.token}/sendMessage"
    assert _result(telegram.client.post(path, data=given))["text"] == "a+b&c"
    assert _result(telegram.client.get(path, params=given))["text"] == "a+b&c"
    assert len(telegram.logged) == 2, "nothing tells a repeat from a new message"


def test_entities_are_given(telegram: TelegramUnderTest) -> None:
    entities = [{"type": "bold", "offset": 3, "length": 2}]
    for given in (entities, json.dumps(entities)):
        made = _result(telegram.call("sendMessage", text="😀 ab", entities=given))
        assert made["entities"] == entities
    outside = [{"type": "bold", "offset": 3, "length": 3}]
    assert telegram.call("sendMessage", text="😀 ab", entities=outside).status_code == 400
    assert telegram.call("sendMessage", text="<b>", parse_mode="HTML").status_code == 400


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (" \n", "Bad Request: message text is empty"),
        ("a" * 4097, "Bad Request: message is too long"),
        ("😀" * 2049, "Bad Request: message is too long"),
    ],
)
def test_a_text_amiss_is_refused(telegram: TelegramUnderTest, text: str, says: str) -> None:
    assert _error(telegram.call("sendMessage", text=text)) == (400, says)
    assert telegram.logged == []


def test_texts_at_their_limits_are_taken(telegram: TelegramUnderTest) -> None:
    for text in ("a" * 4096, "😀" * 2048, " " + "a" * 4096 + "\n"):
        _result(telegram.call("sendMessage", text=text))
    photo = "https://example.org/p.jpg"
    _result(telegram.call("sendPhoto", photo=photo, caption="😀" * 512))
    refused = telegram.call("sendPhoto", photo=photo, caption="😀" * 512 + "a")
    assert _error(refused) == (400, "Bad Request: message caption is too long")


def test_a_photo_is_posted(telegram: TelegramUnderTest) -> None:
    files = {"photo": ("p.png", PNG)}
    made = _result(telegram.call("sendPhoto", caption="Seen", files=files))
    assert (made["caption"], made["photo"][0]["file_size"]) == ("Seen", len(PNG))
    post = telegram.logged[0]
    assert f'<img src="/media/{post.media[0]}"' in telegram.client.get(f"/a/{post.id}").text
    file_id = made["photo"][0]["file_id"]
    again = _result(telegram.call("sendPhoto", photo=file_id))
    assert again["photo"][0]["file_id"] == file_id
    named = telegram.call("sendPhoto", photo="attach://x", files={"x": ("p", PNG)})
    assert "media_group_id" not in _result(named)
    assert len(telegram.logged) == 3


@pytest.mark.parametrize(
    ("photo", "content", "says"),
    [
        ("", None, "there is no photo in the request"),
        ("AgAD", None, "Wrong file identifier/HTTP URL specified"),
        ("attach://x", None, "can't parse InputMedia: media not found"),
        ("attach://x", b"text", "IMAGE_PROCESS_FAILED"),
    ],
)
def test_a_photo_amiss_is_refused(
    telegram: TelegramUnderTest, photo: str, content: bytes | None, says: str
) -> None:
    files = {"other" if content is None else "x": ("p", content or PNG)}
    response = telegram.call("sendPhoto", photo=photo, files=files)
    assert _error(response) == (400, f"Bad Request: {says}")


def _album(telegram: TelegramUnderTest, count: int, **first: str) -> httpx.Response:
    media = [{"type": "photo", "media": f"attach://p{number}"} for number in range(count)]
    if media:
        media[0] |= {"caption": "Album", **first}
    files = {f"p{number}": ("p", PNG) for number in range(count)} or {"x": ("x", PNG)}
    return telegram.call("sendMediaGroup", media=json.dumps(media), files=files)


def test_an_album_is_several_messages_and_one_post(telegram: TelegramUnderTest) -> None:
    telegram.call("sendMessage", text="Before")
    made = _result(_album(telegram, 3))
    assert [it["message_id"] for it in made] == [2, 3, 4]
    assert len({it["media_group_id"] for it in made}) == 1
    assert [it.get("caption") for it in made] == ["Album", None, None]
    assert [post.message for post in telegram.logged] == ["Before", "Album"]
    assert len(telegram.logged[1].media) == 3
    assert _result(telegram.call("sendMessage", text="After"))["message_id"] == 5
    one = _result(_album(telegram, 1))
    assert (len(one), "media_group_id" in one[0]) == (1, False)
    assert len(_result(_album(telegram, 10))) == 10


def test_an_album_amiss_is_refused(telegram: TelegramUnderTest) -> None:
    assert _error(_album(telegram, 0))[1] == "Bad Request: there are no messages to send"
    too_many = "Bad Request: too many messages to send as an album"
    assert _error(_album(telegram, 11))[1] == too_many
    assert _album(telegram, 2, type="video").status_code == 400
    assert _album(telegram, 2, caption="a" * 1025).status_code == 400
    assert telegram.call("sendMediaGroup", media="[").status_code == 400
    assert telegram.call("sendMediaGroup", media=["x"]).status_code == 400
    assert telegram.logged == []


def test_messages_are_deleted_one_by_one(telegram: TelegramUnderTest) -> None:
    made = [it["message_id"] for it in _result(_album(telegram, 2))]
    for number in made:
        assert telegram.logged[0].deleted_at is None
        assert _result(telegram.call("deleteMessage", message_id=number)) is True
    assert telegram.logged[0].deleted_at is not None
    again = telegram.call("deleteMessage", message_id=made[0])
    assert _error(again) == (400, "Bad Request: message to delete not found")
    assert _result(telegram.call("sendMessage", text="Next"))["message_id"] == 3


def test_the_bot_knows_itself_and_its_channel(telegram: TelegramUnderTest) -> None:
    me = _result(telegram.call("getMe"))
    assert (me["is_bot"], me["id"]) == (True, int(telegram.token.partition(":")[0]))
    assert _result(telegram.call("getChat"))["type"] == "channel"
    member = _result(telegram.call("getChatMember", user_id=me["id"]))
    assert (member["status"], member["can_post_messages"]) == ("administrator", True)
    assert telegram.call("getChatMember", user_id=7).status_code == 400
    assert _result(telegram.call("getUpdates")) == [], "it never sees what it posted"


def _become(telegram: TelegramUnderTest, **rights: object) -> None:
    details = {"id": telegram.id, "username": telegram.username, "token": telegram.token}
    telegram.control.add_account("telegram", **details, **rights)


def test_rights_are_needed(telegram: TelegramUnderTest) -> None:
    _become(telegram, can_post_messages=False)
    refused = _error(telegram.call("sendMessage", text="No"))
    assert refused == (400, "Bad Request: need administrator rights in the channel chat")
    _become(telegram, status="left")
    refused = _error(telegram.call("sendMessage", text="No"))
    assert refused == (403, "Forbidden: bot is not a member of the channel chat")
    _become(telegram, status="kicked")
    assert telegram.call("getChat").status_code == 403
    _become(telegram, can_delete_messages=False)
    foreign = telegram.control.foreign_post(telegram.id, "Someone else's")
    number = foreign.rpartition("_")[2]
    assert telegram.call("deleteMessage", message_id=number).status_code == 400
    assert telegram.control.texts(telegram.id) == ["Someone else's"]


def test_tokens_and_chats_are_looked_at(telegram: TelegramUnderTest) -> None:
    missing = _error(telegram.call("sendMessage", chat_id="@nobody_here", text="x"))
    assert missing == (400, "Bad Request: chat not found")
    assert telegram.call("sendMessage", chat_id="", text="x").status_code == 400
    other = telegram.control.accounts("telegram")[0]["id"]
    assert telegram.call("sendMessage", chat_id=other, text="x").status_code == 403
    assert telegram.call("sendSticker").status_code == 404
    telegram.control.revoke(telegram.id)
    assert _error(telegram.call("sendMessage", text="No")) == (401, "Unauthorized")
    telegram.token = telegram.token[:-1] + "b"
    assert _error(telegram.call("getMe")) == (401, "Unauthorized")


def test_a_bot_has_several_channels(telegram: TelegramUnderTest) -> None:
    second = telegram.control.add_account(
        "telegram", id=f"{telegram.id}9", username=f"{telegram.username}_two", token=telegram.token
    )
    made = _result(telegram.call("sendPhoto", files={"photo": ("p", PNG)}))
    file_id = made["photo"][0]["file_id"]
    shared = telegram.call("sendPhoto", chat_id=second["id"], photo=file_id, caption="Second")
    assert _result(shared)["message_id"] == 1
    assert telegram.control.texts(second["id"]) == ["Second"]
    telegram.control.revoke(second["id"])
    assert telegram.call("sendMessage", text="No").status_code == 401


def test_a_limit_says_how_long_to_wait(telegram: TelegramUnderTest) -> None:
    telegram.control.behave("refuse-limited", page=telegram.id, seconds=35)
    response = telegram.call("sendMessage", text="Limited")
    assert _error(response) == (429, "Too Many Requests: retry after 35")
    assert response.json()["parameters"] == {"retry_after": 35}
    telegram.control.behave("refuse-429", page=telegram.id)
    assert "parameters" not in telegram.call("sendMessage", text="Limited").json()


def test_an_error_is_changed_by_its_rule(telegram: TelegramUnderTest) -> None:
    error = {"error_code": 403, "description": "Forbidden: bot was blocked"}
    telegram.control.behave("refuse-invalid", page=telegram.id, error=error)
    assert _error(telegram.call("sendMessage", text="No")) == (403, "Forbidden: bot was blocked")
    assert telegram.requests[-1].code == 403


def test_success_may_say_nothing_or_name_an_older_message(telegram: TelegramUnderTest) -> None:
    telegram.control.behave("answer-without-id", page=telegram.id)
    assert _result(telegram.call("sendMessage", text="First")) is True
    telegram.control.behave("older-id", page=telegram.id)
    assert _result(telegram.call("sendMessage", text="Second"))["message_id"] == 1
    telegram.control.behave("older-id", page=telegram.id)
    assert [it["message_id"] for it in _result(_album(telegram, 2))] == [1]
    assert [post.message for post in telegram.logged] == ["First"]


def test_a_late_message_takes_the_number_that_is_next(telegram: TelegramUnderTest) -> None:
    telegram.control.behave("accept-late", page=telegram.id, seconds=0.3)
    with pytest.raises(Exception, match="disconnected"):
        telegram.call("sendMessage", text="Late")
    assert _result(telegram.call("sendMessage", text="Meanwhile"))["message_id"] == 1
    until(lambda: len(telegram.logged) == 2)
    assert telegram.logged[1].id == f"{telegram.id}_2"


def test_numbers_are_never_given_twice(tmp_path: Path) -> None:
    import httpx  # noqa: PLC0415  elsewhere only a type

    with SandboxProcess.start(tmp_path) as first, httpx.Client(base_url=first.url) as client:
        made = _result(_album(TelegramUnderTest(first, client, 1), 3))
        first.control.take_down(f"{first.control.accounts('telegram')[-1]['id']}_1")
        first.kill()
    with SandboxProcess.start(tmp_path) as second, httpx.Client(base_url=second.url) as client:
        again = _result(TelegramUnderTest(second, client, 1).call("sendMessage", text="Next"))
    assert again["message_id"] == made[-1]["message_id"] + 1
