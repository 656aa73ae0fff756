import type { KeptWrite, PendingStore } from "./types.js"

const tableName = "writes"

/** The answer of a request of IndexedDB. */
const answer = <T>(request: any): Promise<T> =>
    new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result)
        request.onerror = () => reject(request.error)
    })

/**
 * Keeps writes in IndexedDB, and holds a Web Lock for each secret that is this tab's: the system gives it back when the tab is gone,
 * however that came. Undefined where there are none.
 */
export function pendingStore(
    name: string,
    database: any = (globalThis as any).indexedDB,
    locks: any = (globalThis as any).navigator?.locks
): PendingStore | undefined {
    if (!database || !locks) return undefined
    let opened: Promise<any> | undefined
    let isClosed = false
    const forget = (): void => void (opened = undefined)
    const open = async (): Promise<any> => {
        const request = database.open(name, 1)
        request.onupgradeneeded = () => request.result.createObjectStore(tableName, { keyPath: ["secret", "number"] })
        const result = await answer<any>(request)
        result.onclose = forget
        return result
    }
    const end = (): void => {
        opened?.then((database) => database.close()).catch(() => {})
        forget()
    }
    /** What failed, or was closed by the browser, is opened anew. */
    const begin = async (mode?: string, options?: object): Promise<any> => {
        try {
            const transaction = (await (opened ??= open())).transaction(tableName, mode, options)
            // What is written last is kept all the same, and leaves nothing open.
            if (isClosed) end()
            return transaction
        } catch (error) {
            forget()
            throw error
        }
    }
    /** Resolves when what `change` has asked for is on the disk. */
    const write = async (change: (table: any) => void): Promise<void> => {
        const transaction = await begin("readwrite", { durability: "strict" })
        change(transaction.objectStore(tableName))
        return new Promise((resolve, reject) => {
            transaction.oncomplete = () => resolve()
            transaction.onabort = () => reject(transaction.error)
        })
    }
    const releases: (() => void)[] = []
    return {
        add: (kept) => write((table) => table.put(kept)),
        remove: (keys) => write((table) => keys.forEach(({ secret, number }) => table.delete([secret, number]))),
        all: async () => answer<KeptWrite[]>((await begin()).objectStore(tableName).getAll()),
        claim: (secret) =>
            new Promise((resolve, reject) => {
                const hold = (lock: unknown): unknown => {
                    resolve(!!lock && !isClosed)
                    if (isClosed) return
                    // Held until the promise ends, and by nobody when there is none.
                    return lock && new Promise<void>((release) => releases.push(release))
                }
                locks.request(name + secret, { ifAvailable: true }, hold).catch(reject)
            }),
        close() {
            isClosed = true
            for (const release of releases) release()
            end()
        },
    }
}
