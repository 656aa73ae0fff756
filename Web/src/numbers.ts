/** How the exact parser and the codecs know a number's text from other objects; they may come from two files. */
export const numberText = Symbol.for("trebuchet.number")

/** A number that a double cannot hold, as its text. */
export interface ExactNumber {
    readonly [numberText]: string
}

/** Wraps a text; only the exact coder can write it. */
export function exactNumber(text: string): ExactNumber {
    return {
        [numberText]: text,
        toString: () => text,
        valueOf: () => Number(text),
        toJSON() {
            throw new TypeError(text + " is no double: connect with {json: exact} of trebuchet-exact.js")
        },
    } as ExactNumber
}
