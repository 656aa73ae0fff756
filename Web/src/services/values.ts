import { isObject } from "../json.js"

const kindOf = (value: any): number =>
    value == null ? 0 : ["boolean", "number", "string"].indexOf(typeof value) + 1 || (Array.isArray(value) ? 4 : 5)

const isRecord = (value: any): boolean => kindOf(value) === 5

/** As long as a text is in order by its bytes in UTF-8, which JavaScript's own order is not for characters beyond 16 bits. */
const sortable = (text: string): string => text.replace(/[\ue000-\uffff]/g, "\ud7ff$&")

export function compareTexts(one: string, other: string): number {
    const [left, right] = [sortable(one), sortable(other)]
    return left < right ? -1 : +(left > right)
}

/** The order of places by a value: absent and null, false, true, numbers, texts, arrays, objects. */
export function comparePlaces(one: any, other: any): number {
    const kind = kindOf(one)
    return kind - kindOf(other) || (kind === 3 ? compareTexts(one, other) : kind === 1 || kind === 2 ? one - other : 0)
}

/** Whether both are numbers or both texts, so that one can be less than the other. */
export const areComparable = (one: any, other: any): boolean => kindOf(one) === kindOf(other) && /^[ns]/.test(typeof one)

/** A value as a merge patch makes it (RFC 7396); neither is changed. */
export function merged(value: any, patch: any): any {
    if (!isRecord(patch)) return patch
    const own = isRecord(value) ? value : {}
    const members = Object.entries({ ...own, ...patch }).filter(([, member]) => member !== null)
    return Object.fromEntries(members.map(([name, member]) => [name, Object.hasOwn(patch, name) ? merged(own[name], member) : member]))
}

/** A copy, for what the app does with its own afterwards; what writes itself as JSON stays the same object. */
export function copied(value: any): any {
    if (Array.isArray(value)) return value.map(copied)
    if (!isObject(value) || value.toJSON) return value
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copied(member)]))
}

/** Whether two values are equal as JSON; null and absent are. */
export function isSame(one: any, other: any): boolean {
    if ((one ?? null) === (other ?? null)) return true
    if (!isObject(one) || kindOf(one) !== kindOf(other)) return false
    const names = Object.keys(one)
    return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
}
