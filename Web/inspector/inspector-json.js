// Lossless JSON: a number that a double cannot represent is kept as its text.
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
        // It contains such a number, which JSON.stringify rejects.
        return exact.stringify(value)
    }
}

/** A deep copy of a JSON value. */
export function copied(value) {
    if (!isContainer(value)) return value
    if (Array.isArray(value)) return value.map(copied)
    const made = {}
    for (const [key, inner] of Object.entries(value)) put(made, key, copied(inner))
    return made
}

/** Sets an own property, even for names such as `__proto__`. */
export function put(object, key, value) {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}
