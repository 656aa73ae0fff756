/** How the exact coder and the codecs know such a number from other objects: they come from two files. */
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
    /** `JSON` refuses to write a bigint, so it refuses this number instead of changing it. */
    toJSON() {
        return 0n
    }
}
