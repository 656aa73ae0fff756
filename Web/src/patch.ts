import { define, equal, hasOwn, isIndex, isObject, parsePath } from "./json.js"

interface Operation {
    op: string
    path: string
    from?: string
    value?: unknown
}

/**
 * Returns the value that a patch (RFC 6902) makes of another value, which stays unchanged. Both values share the objects that the patch
 * does not touch. Throws when an operation fails.
 */
export function applyPatch(value: unknown, patch: readonly Operation[]): unknown {
    // The containers that only the new value refers to. Each is copied once, for any number of operations.
    let fresh = new Set<object>()
    let root: any = value

    const fail: (path: string) => never = (path) => {
        throw new Error("the patch does not apply at " + path)
    }

    const own = (container: any): any => {
        if (fresh.has(container)) return container
        const copy = Array.isArray(container) ? container.slice() : { ...container }
        fresh.add(copy)
        return copy
    }

    const indexIn = (name: string, end: number, path: string): number => {
        const index = isIndex(name) ? Number(name) : -1
        return index >= 0 && index < end ? index : fail(path)
    }

    const get = (path: string): any =>
        parsePath(path).reduce((container, name) => {
            if (Array.isArray(container)) return container[indexIn(name, container.length, path)]
            return isObject(container) && hasOwn(container, name) ? container[name] : fail(path)
        }, root)

    /** Calls `edit` with the container at the end of a path, copied for changes. */
    const edit = (path: string, edit: (container: any, name: string) => void): void => {
        const names = parsePath(path)
        const last = names.pop()!
        let container = (root = own(isObject(root) ? root : fail(path)))
        for (const name of names) {
            const key = Array.isArray(container) ? String(indexIn(name, container.length, path)) : name
            const inner = hasOwn(container, key) ? container[key] : undefined
            const copy = own(isObject(inner) ? inner : fail(path))
            define(container, key, copy)
            container = copy
        }
        edit(container, last)
    }

    const remove = (path: string): void =>
        path === ""
            ? fail(path)
            : edit(path, (container, name) => {
                  if (Array.isArray(container)) container.splice(indexIn(name, container.length, path), 1)
                  else if (!hasOwn(container, name)) fail(path)
                  else delete container[name]
              })

    const put = (path: string, value: unknown, replaces?: boolean): void => {
        if (path === "") root = value
        else
            edit(path, (container, name) => {
                if (!Array.isArray(container)) {
                    if (replaces && !hasOwn(container, name)) fail(path)
                    define(container, name, value)
                } else if (replaces) container[indexIn(name, container.length, path)] = value
                else {
                    const { length } = container
                    container.splice(name === "-" ? length : indexIn(name, length + 1, path), 0, value)
                }
            })
    }

    for (const { op, path, from, value } of patch) {
        const needsValue = op === "add" || op === "replace" || op === "test"
        if (needsValue ? value === undefined : op !== "remove" && from === undefined) fail(path)
        if (op === "remove") remove(path)
        else if (op === "test") equal(get(path), value) || fail(path)
        else if (needsValue) put(path, value, op === "replace")
        else if (op === "copy" || op === "move") {
            const moved = get(from!)
            if (op === "move") {
                // A value cannot be moved into itself.
                if (path.startsWith(from + "/")) fail(path)
                if (path === from) continue
                remove(from!)
            } else fresh = new Set() // The value now has two references.
            put(path, moved)
        } else fail(path)
    }
    return root
}
