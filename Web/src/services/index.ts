import { Backend } from "./backend.js"
import type { Services, ServicesOptions } from "./types.js"

/** Connects to the services of a server, as `connect` does. Returns immediately, and retries until `close()`. */
export function services(url: string | URL, options: ServicesOptions = {}): Services {
    return new Backend(String(new URL(url, (globalThis as any).location?.href)), options)
}

export { pendingStore } from "./persisted-writes.js"
export type {
    Auth, Changes, Collection, CommandOptions, Comparison, Comparisons, Document, FieldPath, Fields, PersistedWrite, LinkOptions, NewFields,
    Order, Page, Pages, Patch, Peer, PendingStore, Query, QueryOptions, QueryStatus, RefusedWrite, Room, RoomEvent, RoomStatus,
    ServerTime, Services, ServicesOptions, SessionInfo, SessionStorage, SignIn, User, Where, Writes, Written,
} from "./types.js"
