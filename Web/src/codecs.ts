import { ExactNumber } from "./numbers.js"
import type { Codec } from "./types.js"

// Reading is memoised by the JSON object: patches leave alone what they do not touch, so it stays the same after reading, too.
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
    // Without a prototype's setter: a member may be called `__proto__`.
    return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, convert(value, name)]))
}

/** Swift's `Date`: ISO 8601 in UTC with milliseconds. */
export const date: Codec<Date> = { read: (json) => new Date(json), write: (value) => value.toISOString() }

/** Swift's `Data`: base64. */
export const data: Codec<Uint8Array> = {
    read: (json) => Uint8Array.from(atob(json), (each) => each.charCodeAt(0)),
    write: (value) => btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join("")),
}

/** A 64-bit integer. Beyond 2^53 it needs the exact coder. */
export const bigint: Codec<bigint> = {
    read: (json) => BigInt(String(json)),
    write: (value) => (Number.isSafeInteger(Number(value)) ? Number(value) : value),
}

/** Swift's `Decimal`, as text. With more digits than a double holds it needs the exact coder. */
export const decimal: Codec<any> = {
    read: String,
    write(value) {
        if (!/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value)) throw new TypeError("no number: " + value)
        // Fifteen digits fit into any double, if the exponent does.
        return value.replace(/\D/g, "").length < 16 && isFinite(value) ? Number(value) : new ExactNumber(value)
    },
}

/** An array whose elements need a codec. */
export function array<T = any>(element: Codec<T>): Codec<T[]> {
    return {
        read: memoised((json) => json.map((each: any) => element.read(each))),
        write: (value) => value.map((each) => element.write(each)),
        part: () => element,
    }
}

/** Swift's `[String: T]` whose values need a codec. */
export function record<T = any>(element: Codec<T>): Codec<Record<string, T>> {
    return {
        read: memoised((json) => mapMembers(json, (each) => element.read(each))),
        write: (value) => mapMembers(value, (each) => element.write(each)),
        part: () => element,
    }
}

/** A dictionary whose keys are no strings: in JSON an array of a key, its value, the next key, and so on. */
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

/** An object some of whose members need codecs; others, and those that are not there, are left as they are. */
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

/** An enum with values: an object with one member, the case, which may need a codec. An unknown case is left as it is. */
export const union: <T = any>(cases: { readonly [name: string]: Codec }) => Codec<T> = struct

/** What may be null. */
export function nullable<T = any>(codec: Codec<T>): Codec<T | null> {
    return {
        read: (json) => (json == null ? null : codec.read(json)),
        write: (value) => (value == null ? null : codec.write(value)),
        part: (name) => codec.part?.(name),
    }
}

/** The codec of a type that contains itself. */
export function lazy<T = any>(codec: () => Codec<T>): Codec<T> {
    return {
        read: (json) => codec().read(json),
        write: (value) => codec().write(value),
        part: (name) => codec().part?.(name),
    }
}
