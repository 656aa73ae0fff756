// trebuchet generate typescript Sources --runtime trebuchet
// Made of Swift sources. Do not edit: run the command again when they have changed.

import { actorType, array, date, struct } from "trebuchet"
import type { Call, CallOptions, Codec } from "trebuchet"

/** Where a pointer is, in parts of the room's width and height. */
export interface Cursor {
    x: number
    y: number
}

export interface Message {
    id: UUID
    author: UUID
    name: string
    text: string
    date: Date
}

/** Somebody who is there now. */
export interface Person {
    id: UUID
    name: string
    /** Absent while it is somewhere else. */
    cursor?: Cursor
}

/** Why the room does not take a message. */
export type Refusal = { empty: Record<string, never> } | { tooLong: { limit: number } } | UnknownCase

/** A UUID in capitals, as Swift writes it. */
export type UUID = string & { readonly __brand: "UUID" }
export function UUID(text: string): UUID {
    return text.toUpperCase() as UUID
}

/** A case that this file does not know: a newer server's. */
export interface UnknownCase {
    readonly __unknownCase?: never
}

const MessageCodec: Codec<Message> = /*#__PURE__*/ struct({ date: date })

/** A room: what was said, and who is there. */
export const Chat = /*#__PURE__*/ actorType<{
    methods: {
        /**
         * Shows somebody to all as long as the connection lasts; over the next one, he comes in again.
         *
         * Nobody is signed in here, so a page says itself who it is.
         */
        enter(id: UUID, name: string, options?: CallOptions): Call<void>
        /** Moves somebody's cursor; null takes it away. */
        point(id: UUID, cursor: Cursor | null, options?: CallOptions): Call<void>
        /** Says something, once: a call that is repeated over a new connection is not done twice. */
        say(text: string, id: UUID, name: string, options?: CallOptions): Call<Message, Refusal>
    }
    states: {
        messages: Message[]
        people: Person[]
    }
}>({
    name: "Chat",
    methods: {
        enter: { target: "enter(id:name:)" },
        point: { target: "point(id:to:)" },
        say: { target: "say(_:id:name:)", result: MessageCodec, idempotent: true },
    },
    states: {
        messages: { target: "observeMessages", value: /*#__PURE__*/ array(MessageCodec) },
        people: { target: "observePeople" },
    },
})
