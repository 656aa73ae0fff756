export const hasOwn = Object.hasOwn

export const isObject = (value: any): value is Record<string, any> => typeof value === "object" && value !== null

/** Sets a member; a member called `__proto__` is treated like any other. */
export function define(object: object, name: string, value: unknown): void {
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

function areComparable(a: any, b: any): boolean {
    return isObject(a) && isObject(b) && Array.isArray(a) === Array.isArray(b)
}

/**
 * Returns true if two values are equal as JSON. Every value equals itself, including NaN; otherwise code that compares before it sends
 * would loop forever.
 */
export function equal(a: any, b: any): boolean {
    if (a === b || (a !== a && b !== b)) return true
    if (!areComparable(a, b)) return false
    const names = Object.keys(a)
    return (
        names.length === Object.keys(b).length && names.every((name) => hasOwn(b, name) && equal(a[name], b[name]))
    )
}

/**
 * Returns the first part of a value that JSON cannot carry, with its path: `/position/x: NaN`. Returns undefined if there is none. `JSON`
 * writes null for a number that is not finite, and omits functions. An undefined member is absent, as in JSON.
 *
 * @param takesBigInts true if the coder writes bigints, as the exact coder does.
 */
export function unencodable(value: any, takesBigInts?: boolean, above: unknown[] = []): string | undefined {
    const { length } = above
    if (typeof value?.toJSON === "function") {
        // This is an invalid date.
        if (value.getTime && value.getTime() !== value.getTime()) return ": " + value
        value = value.toJSON()
    }
    const kind = typeof value
    if (kind === "number" ? !isFinite(value) : kind === "bigint" ? !takesBigInts : kind === "function" || kind === "symbol") {
        return ": " + (kind === "number" ? value : "a " + kind)
    }
    if (!isObject(value)) return undefined
    if (above.includes(value)) return ": a value that contains itself"
    above.push(value)
    for (const name of Object.keys(value)) {
        const found = unencodable(value[name], takesBigInts, above)
        if (found) return "/" + name + found
    }
    above.length = length
    return undefined
}

/**
 * Returns the new value with every part that equals the old one replaced by the old object. The new value has no other references yet, so
 * it is changed in place.
 */
export function share(old: any, fresh: any): any {
    if (!areComparable(old, fresh)) return fresh
    const names = Object.keys(fresh)
    let same = names.length === Object.keys(old).length
    for (const name of names) {
        const value = fresh[name]
        const known = hasOwn(old, name)
        const shared = known ? share(old[name], value) : value
        if (shared !== value) define(fresh, name, shared)
        same &&= known && shared === old[name]
    }
    return same ? old : fresh
}

/** Returns the names of a path (RFC 6901). */
export function parsePath(path: string): string[] {
    if (path === "") return []
    if (path[0] !== "/" || /~(?![01])/.test(path)) throw new SyntaxError("not a JSON pointer: " + path)
    return path
        .slice(1)
        .split("/")
        .map((name) => name.replace(/~1/g, "/").replace(/~0/g, "~"))
}

/** Returns the member or element with the given name; undefined if there is none. */
export function member(value: any, name: string): any {
    // An array has other members than its elements, for example `length`.
    return isObject(value) && hasOwn(value, name) && (!Array.isArray(value) || isIndex(name)) ? value[name] : undefined
}

export const isIndex = (name: string): boolean => /^(0|[1-9]\d*)$/.test(name)
