"""Codes of posts, of what they hold, and of their reviews."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from publisher.api.catalogue_entry import Entry
from publisher.words import N_

_E = Entry

POSTS: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        "edited-meanwhile": _E(
            412,
            N_("Somebody saved since you read it"),
            N_("Take what you need from both texts, and save again with the new ETag."),
        ),
        "ref-taken": _E(
            409,
            N_("Another post has that external_reference"),
            N_("Look at that post, or give another reference."),
        ),
        "ref-refused": _E(422, N_("That cannot be a reference"), N_("Give another.")),
        "content-refused": _E(
            422, N_("A part cannot be kept as a post"), N_("Mend the part that is named.")
        ),
        "content-too-large": _E(
            422, N_("A part is larger than what is kept"), N_("Shorten the part that is named.")
        ),
        "needs-approval": _E(
            409,
            N_("The version is not approved"),
            N_("Ask for approval: POST /api/v1/posts/…/submit."),
        ),
        "approval-by-other": _E(
            409, N_("Another person than its author has to approve it"), N_("Ask for approval.")
        ),
        "version-is-old": _E(
            409,
            N_("There is a newer version"),
            N_("Read the newest version, then decide about that one."),
        ),
        "no-version": _E(409, N_("The draft was never saved"), N_("Save it first.")),
        "in-trash": _E(409, N_("It is in the trash"), N_("Restore it first.")),
        "already-approved": _E(
            409, N_("It is approved already"), N_("Schedule it, or take the approval back.")
        ),
        "not-approved": _E(409, N_("It is not approved"), N_("Nothing need be taken back.")),
        "comment-missing": _E(422, N_("A comment is missing"), N_("Say what should change.")),
        "comment-too-long": _E(422, N_("The comment is too long"), N_("Shorten it.")),
        "comment-refused": _E(422, N_("The comment cannot be kept"), N_("Take out what is named.")),
        "channel-missing": _E(422, N_("It goes nowhere yet"), N_("Name a channel.")),
        "channel-twice": _E(
            422, N_("A channel is named twice"), N_("Give one time for each channel.")
        ),
        "not-live": _E(409, N_("It is not live there"), N_("Schedule it instead.")),
        "already-deleted": _E(409, N_("It is deleted there already"), N_("Nothing need be done.")),
        "cannot-delete": _E(
            409, N_("The platform deletes nothing for us"), N_("Delete it by hand, on the page.")
        ),
        "no-link": _E(
            409,
            N_("Nobody knows under which id it is live"),
            N_("Delete it by hand, on the page."),
        ),
        "send-may-arrive": _E(
            409,
            N_("An earlier send may still arrive and put it back"),
            N_("Ask again when the time that is named has come."),
        ),
        "not-refused": _E(409, N_("There is nothing to fix there"), N_("Schedule it instead.")),
        "not-replaced": _E(
            409, N_("Its place was not taken over"), N_("Look at the job that is named.")
        ),
        "label-refused": _E(422, N_("A label cannot be kept"), N_("Mend the label that is named.")),
        "workspace-unnamed": _E(
            409, N_("Nobody said which workspace"), N_("Use a token of the workspace.")
        ),
        "text-too-long": _E(
            422,
            N_("The text is too long for the platform, as it counts"),
            N_("Shorten it, or write that channel's own text."),
        ),
        "text-too-large": _E(
            422,
            N_("The text is too many bytes for the platform"),
            N_("Shorten it, or write that channel's own text."),
        ),
        "text-empty": _E(422, N_("There is no text"), N_("Write one.")),
        "empty": _E(422, N_("A part is empty"), N_("Write it, or take it out.")),
        "unreadable": _E(422, N_("The content cannot be read"), N_("Write it anew.")),
        "text-unusable": _E(
            422, N_("The platform does not take that text"), N_("Mend what is named.")
        ),
        "subject-too-long": _E(422, N_("The subject is too long"), N_("Shorten the first line.")),
        "subject-unusable": _E(422, N_("The subject cannot be used"), N_("Mend the first line.")),
        "address-unusable": _E(422, N_("That is no address to send to"), N_("Mend it.")),
        "character-not-allowed": _E(
            422, N_("The platform does not take a character of it"), N_("Take the character out.")
        ),
        "content-unreadable": _E(422, N_("The content cannot be read"), N_("Write it anew.")),
        "alt-missing": _E(
            422, N_("A picture has no description"), N_("Write one, for those who cannot see it.")
        ),
        "alt-too-long": _E(422, N_("A picture's description is too long"), N_("Shorten it.")),
        "link-not-an-address": _E(422, N_("The link is no address"), N_("Give it as https://….")),
        "link-too-long": _E(422, N_("The link is too long"), N_("Give a shorter one.")),
        "link-with-media": _E(
            422,
            N_("The platform does not take a link beside pictures"),
            N_("Leave one of them out."),
        ),
        "media-dimensions": _E(
            422, N_("The picture is too large or too narrow"), N_("Give a smaller one.")
        ),
        "media-duration": _E(422, N_("The video is too long"), N_("Cut it.")),
        "media-kind": _E(
            422, N_("The platform does not take that kind of file"), N_("Give another.")
        ),
        "media-type": _E(
            422, N_("The platform does not take that type of file"), N_("Give another.")
        ),
        "media-mixed": _E(
            422, N_("The platform does not take pictures beside videos"), N_("Leave one kind out.")
        ),
        "media-size": _E(
            422, N_("The file is too large for the platform"), N_("Give a smaller one.")
        ),
        "media-missing": _E(
            422, N_("The file is not kept here"), N_("Add it first: POST /api/v1/media.")
        ),
        "media-changed": _E(422, N_("The file changed while it was read"), N_("Send it again.")),
        "media-empty": _E(422, N_("The file is empty"), N_("Send it whole.")),
        "media-not-a-file": _E(422, N_("That is no file"), N_("Give a picture or a video.")),
        "media-polyglot": _E(
            422, N_("The file is two things at once"), N_("Save the picture anew, and send that.")
        ),
        "media-too-large": _E(422, N_("The file is too large"), N_("Give a smaller one.")),
        "media-type-unknown": _E(
            422, N_("The file is of no type we take"), N_("Give JPEG, PNG, GIF, WebP, MP4 or MOV.")
        ),
        "media-too-many-pixels": _E(
            422, N_("The picture has too many pixels"), N_("Save it smaller, and send that.")
        ),
        "media-too-many-frames": _E(
            422, N_("The picture has too many frames"), N_("Shorten it, or send a video.")
        ),
        "media-too-demanding": _E(
            422, N_("The picture takes too much to decode"), N_("Save it anew, and send that.")
        ),
        "media-animated": _E(
            422, N_("A picture of that type may not move"), N_("Give a GIF or a video.")
        ),
        "media-unreadable": _E(
            422, N_("The file cannot be read"), N_("Save it anew, and send that.")
        ),
        "media-not-found": _E(
            422, N_("There is nothing at that address"), N_("Check the address.")
        ),
        "media-url": _E(
            422, N_("That address cannot be fetched"), N_("Give a public https address.")
        ),
        "media-url-refused": _E(
            422,
            N_("That address leads to where we do not go"),
            N_("Give a public address, or upload the file."),
        ),
        "media-url-redirects": _E(
            422, N_("That address leads on to others"), N_("Give the address of the file itself.")
        ),
        "media-url-downgraded": _E(
            422,
            N_("That address leads from https to http"),
            N_("Give the address of the file itself."),
        ),
        "media-url-status": _E(
            422, N_("There is no file at that address"), N_("Check the address.")
        ),
        "media-url-slow": _E(
            422,
            N_("The site did not send the file in time"),
            N_("Repeat it later, or upload the file."),
        ),
        "media-url-packed": _E(
            422,
            N_("The site sends the file packed"),
            N_("Give another address, or upload the file."),
        ),
        "media-url-unreachable": _E(
            422, N_("The site cannot be reached"), N_("Check the address, or upload the file.")
        ),
        "media-lost": _E(
            409, N_("The file is not where it was put"), N_("Add the same file again.")
        ),
        "media-unreachable": _E(
            503, N_("The storage of files does not answer"), N_("Wait, then repeat it.")
        ),
        "too-many-media": _E(422, N_("The platform takes fewer files"), N_("Leave some out.")),
        "tag-cut": _E(422, N_("The platform would cut a hashtag"), N_("Write it otherwise.")),
        "token-ends-before": _E(
            422,
            N_("Our access ends before that time"),
            N_("Reconnect the channel, or give an earlier time."),
        ),
        "alike": _E(
            422,
            N_("Something like it is live there, or waits"),
            N_("Look at the post that is named; if both are wanted, nothing need be done."),
        ),
        "alike-twin": _E(
            422,
            N_("The same is live there, or waits"),
            N_("Look at the post that is named; if both are wanted, nothing need be done."),
        ),
        "channel-needs-reconnecting": _E(
            409,
            N_("The channel no longer accepts our access"),
            N_("Reconnect it: POST /api/v1/channels/…/reconnect."),
        ),
        "channel-takes-no-posts": _E(
            422, N_("That channel takes no posts"), N_("Choose another channel.")
        ),
        "first-comment-not-sent": _E(
            422, N_("First comments are not sent by this release"), N_("Put it into the text.")
        ),
        "first-comment-not-taken": _E(
            422, N_("The platform takes no first comment"), N_("Put it into the text.")
        ),
        "platform-unknown": _E(
            422, N_("This release does not know that platform"), N_("Choose another channel.")
        ),
    }
)
