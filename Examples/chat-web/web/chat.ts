// trebuchet generate typescript Sources --runtime trebuchet
// Generated from Swift sources. Do not edit; run the command again after they change.

import { actorType, array, date, struct } from "trebuchet"
import type { Call, CallOptions, Codec } from "trebuchet"

/** The position of a pointer, as fractions of the room's width and height. */
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

/** A person in the room. */
export interface Person {
    id: UUID
    name: string
    /** Absent while the pointer is outside of the room. */
    cursor?: Cursor
}

/** The reason why the room rejects a message. */
export type Refusal = { empty: Record<string, never> } | { tooLong: { limit: number } } | UnknownCase

/** A UUID in capitals, as Swift writes it. */
export type UUID = string & { readonly __brand: "UUID" }
export function UUID(text: string): UUID {
    return text.toUpperCase() as UUID
}

/** A case of a newer server that is unknown to this file. */
export interface UnknownCase {
    readonly __unknownCase?: never
}

const MessageCodec: Codec<Message> = /*#__PURE__*/ struct({ date: date })

/** A room with its messages and people. */
export const Chat = /*#__PURE__*/ actorType<{
    methods: {
        /**
         * Adds a person until the connection closes. The page calls it again over each new connection.
         *
         * This example has no sign-in, so the page chooses its id.
         */
        enter(id: UUID, name: string, options?: CallOptions): Call<void>
        /** Moves a person's cursor; null removes it. */
        point(id: UUID, cursor: Cursor | null, options?: CallOptions): Call<void>
        /** Adds a message. A call that is repeated over a new connection runs once. */
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
