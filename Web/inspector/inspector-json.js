// JSON without loss: a number that a double does not hold stays what it is.
import { exact } from "../dist/trebuchet-exact.js"

export { exact }

const mark = Symbol.for("trebuchet.number")

/** Whether a value is a number that is kept as its text. */
export const isExact = (value) => typeof value === "object" && value !== null && value[mark] === true

export const isContainer = (value) => typeof value === "object" && value !== null && !isExact(value)

/** A value as JSON. */
export function written(value, indent) {
    try {
        return JSON.stringify(value, null, indent)
    } catch {
        // It has such a number, which JSON itself refuses to write.
        return exact.stringify(value)
    }
}

/** A value of JSON that is nobody else's. */
export function copied(value) {
    if (!isContainer(value)) return value
    if (Array.isArray(value)) return value.map(copied)
    const made = {}
    for (const [key, inner] of Object.entries(value)) put(made, key, copied(inner))
    return made
}

/** As a member of its own, whatever it is called. */
export function put(object, key, value) {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}
