/** The mark by which the exact coder and the codecs recognize exact numbers: the two are in different files. */
export const numberMark = Symbol.for("trebuchet.number")

/** A number that a double cannot hold, as text. Only the exact coder can write it. */
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
    /** Returns a bigint, which `JSON` refuses to write. `JSON` therefore rejects this number and does not change it. */
    toJSON() {
        return 0n
    }
}
