import { ExactNumber } from "./exact-number.js"
import type { Codec } from "./types.js"

// Results are memoised by JSON object. Patches preserve the objects that they do not change, so the converted values stay identical, too.
function memoised<T>(read: (json: any) => T): (json: any) => T {
    const known = new WeakMap<object, T>()
    return (json) => {
        if (typeof json !== "object" || !json) return read(json)
        let value = known.get(json)
        if (value === undefined) known.set(json, (value = read(json)))
        return value
    }
}

const plain: Codec = { read: (json) => json, write: (value) => value }

function mapMembers(object: any, convert: (value: any, name: string) => unknown): any {
    // This does not call the prototype's setter: a member may be called `__proto__`.
    return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, convert(value, name)]))
}

/** The codec of Swift's `Date`: ISO 8601 in UTC with milliseconds. */
export const date: Codec<Date> = { read: (json) => new Date(json), write: (value) => value.toISOString() }

/** The codec of Swift's `Data`: base64. */
export const data: Codec<Uint8Array> = {
    read: (json) => Uint8Array.from(atob(json), (each) => each.charCodeAt(0)),
    write: (value) => btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join("")),
}

/** The codec of a 64-bit integer. Values beyond 2^53 need the exact coder. */
export const bigint: Codec<bigint> = {
    read: (json) => BigInt(String(json)),
    write: (value) => (Number.isSafeInteger(Number(value)) ? Number(value) : value),
}

/** The codec of Swift's `Decimal`, as text. Values with more digits than a double holds need the exact coder. */
export const decimal: Codec<any> = {
    read: String,
    write(value) {
        if (!/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value)) throw new TypeError("not a number: " + value)
        // Fifteen digits fit into any double, if the exponent does.
        return value.replace(/\D/g, "").length < 16 && isFinite(value) ? Number(value) : new ExactNumber(value)
    },
}

/** Returns the codec of an array whose elements need a codec. */
export function array<T = any>(element: Codec<T>): Codec<T[]> {
    return {
        read: memoised((json) => json.map((each: any) => element.read(each))),
        write: (value) => value.map((each) => element.write(each)),
        part: () => element,
    }
}

/** Returns the codec of Swift's `[String: T]` whose values need a codec. */
export function record<T = any>(element: Codec<T>): Codec<Record<string, T>> {
    return {
        read: memoised((json) => mapMembers(json, (each) => element.read(each))),
        write: (value) => mapMembers(value, (each) => element.write(each)),
        part: () => element,
    }
}

/** Returns the codec of a dictionary whose keys are not strings. Its JSON is an array of a key, its value, the next key, and so on. */
export function map<K = any, V = any>(key: Codec<K> = plain, value: Codec<V> = plain): Codec<Map<K, V>> {
    const at = (index: number): Codec => (index % 2 ? value : key)
    return {
        read: memoised((json) => {
            const result = new Map<K, V>()
            for (let index = 0; index < json.length; index += 2)
                result.set(key.read(json[index]), value.read(json[index + 1]))
            return result
        }),
        write: (pairs) => [...pairs].flatMap(([k, v]) => [key.write(k), value.write(v)]),
        part: (name) => at(Number(name)),
    }
}

/** Returns the codec of an object with members that need codecs. Other members, and absent ones, stay unchanged. */
export function struct<T = any>(members: { readonly [name: string]: Codec }): Codec<T> {
    const own = (name: string) => (Object.hasOwn(members, name) ? members[name] : undefined)
    const convert = (object: any, way: "read" | "write") =>
        mapMembers(object, (value, name) => (value == null ? value : own(name)?.[way](value) ?? value))
    return {
        read: memoised((json) => convert(json, "read")),
        write: (value) => convert(value, "write"),
        part: own,
    }
}

/**
 * Returns the codec of an enum with associated values. Its JSON is an object with one member, the case, which may need a codec. An unknown
 * case stays unchanged.
 */
export const union: <T = any>(cases: { readonly [name: string]: Codec }) => Codec<T> = struct

/** Returns the codec of a value that may be null. */
export function nullable<T = any>(codec: Codec<T>): Codec<T | null> {
    return {
        read: (json) => (json == null ? null : codec.read(json)),
        write: (value) => (value == null ? null : codec.write(value)),
        part: (name) => codec.part?.(name),
    }
}

/** Returns the codec of a type that contains itself. */
export function lazy<T = any>(codec: () => Codec<T>): Codec<T> {
    return {
        read: (json) => codec().read(json),
        write: (value) => codec().write(value),
        part: (name) => codec().part?.(name),
    }
}
