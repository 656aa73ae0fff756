/** How the exact coder and the codecs know such a number from other objects: they may come from two files. */
export const numberMark = Symbol.for("trebuchet.number")

/** A number that a double cannot hold, as its text. Only the exact coder can write it. */
export class ExactNumber {
    constructor(readonly text: string) {}

    get [numberMark]() {
        return true
    }
    toString() {
        return this.text
    }
    valueOf() {
        return Number(this.text)
    }
    toJSON(): never {
        throw new TypeError(this.text + " is no double: connect with json: exact, of trebuchet-exact.js")
    }
}
