import { ExactNumber, numberMark } from "./exact-number.js"
import type { JSONCoder } from "./types.js"

/** Matches a text that may contain a number outside a double's precision; all other texts need no exact parsing. */
const suspicious = /[\d.]{16}|\d[eE][+-]?\d{3}/
/**
 * Matches a string delimiter, an escape in a string, or a candidate number. A pattern for a whole string would need memory for each of its
 * escapes.
 */
const token = /"|\\.|-?\d[\d.eE+-]*/g
const grammar = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Returns the canonical form of a number; undefined for text that is not a number. */
function normalized(text: string): string | undefined {
    const parts = grammar.exec(text)
    if (!parts) return undefined
    const [, sign, whole = "", fraction = "", exponent = "0"] = parts
    const digits = (whole + fraction).replace(/^0+/, "")
    // A loop replaces a pattern here: the pattern would rescan each run of zeros from each of its positions.
    let { length } = digits
    while (digits[length - 1] === "0") length--
    if (!length) return "0"
    return sign + digits.slice(0, length) + "e" + (Number(exponent) - fraction.length + digits.length - length)
}

/** Returns a string that does not occur in the text. */
function markFor(text: string): string {
    let mark: string
    do mark = "number" + Math.random() + ":"
    while (text.includes(mark))
    return mark
}

/** A coder that reads and writes `bigint` and all digits of a `Decimal`: `connect(url, { json: exact })`. */
export const exact: JSONCoder = {
    parse(text) {
        if (!suspicious.test(text)) return JSON.parse(text)
        const mark = markFor(text)
        let [isChanged, isInString] = [false, false]
        const marked = text.replace(token, (token) => {
            if (token === '"') isInString = !isInString
            const exactly = isInString ? undefined : normalized(token)
            if (exactly === undefined || exactly === normalized(String(Number(token)))) return token
            isChanged = true
            return `"${mark}${token}"`
        })
        if (!isChanged) return JSON.parse(text)
        return JSON.parse(marked, (_, value) =>
            typeof value === "string" && value.startsWith(mark) ? new ExactNumber(value.slice(mark.length)) : value
        )
    },

    stringify(value) {
        const mark = markFor("")
        let isChanged = false
        const text = JSON.stringify(value, function (this: any, name, value) {
            const original = this[name]
            if (typeof original !== "bigint" && !original?.[numberMark]) return value
            const text = String(original)
            if (!grammar.test(text)) throw new TypeError("not a number: " + text)
            isChanged = true
            return mark + text
        })
        return isChanged ? text.replace(new RegExp(`"${mark.replace(".", "\\.")}([^"]+)"`, "g"), "$1") : text
    },
}
