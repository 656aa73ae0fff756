import type { Client, ConnectOptions, Store, TrebuchetError } from "./trebuchet.js";
export interface ServicesOptions extends Omit<ConnectOptions, "token"> {
    /**
     * The storage that keeps the session across reloads, for all tabs: `localStorage`. Any code that reads it can act as the user. Default
     * none: the session is in memory only.
     */
    storage?: SessionStorage;
    /** The key of the session in the storage. Default `trebuchet:` and the server's address. */
    storageKey?: string;
    /**
     * The store that keeps waiting writes across reloads. Default: IndexedDB with Web Locks, if available; browsers have Web Locks for
     * pages from https or from this host. `null`: in memory only.
     */
    pending?: PendingStore | null;
    /** The maximum number of waiting writes per collection; further writes are refused. Default 1,000. */
    pendingWrites?: number;
    /** Receives each write that was refused and undone, including writes made before a reload. */
    refused?: (write: RefusedWrite) => void;
}
/** A part of the DOM's `Storage`. */
export interface SessionStorage {
    getItem(key: string): string | null;
    setItem(key: string, value: string): void;
    removeItem(key: string): void;
}
/** The services of a server. */
export interface Services {
    readonly client: Client;
    readonly auth: Auth;
    /** Joins a room until `leave()`. Returns the same object for all callers. */
    room<Presence = any>(name: string, presence?: Presence | null): Room<Presence>;
    /** Returns the rooms of a type that have members, after a name. */
    rooms(type: string, after?: string | null, limit?: number): Promise<{
        name: string;
        members: number;
    }[]>;
    collection<Item extends Fields = Fields>(name: string): Collection<Item>;
    /** Closes the services. The next instance sends the writes that are persisted. */
    close(): void;
}
export interface User {
    readonly id: string;
    readonly isGuest: boolean;
    readonly email?: string;
    readonly roles?: readonly string[];
}
export interface SignIn {
    /** The phase. `loading`: a user was signed in, and the server has not confirmed that yet. */
    readonly phase: "loading" | "signedIn" | "signedOut";
    readonly user?: User;
    /** The reason why a session has ended without a request here: `elsewhere`, `expired` and others. */
    readonly ended?: string;
}
export interface SessionInfo {
    readonly id: string;
    readonly created?: string;
    readonly lastRenewed: string;
    readonly isCurrent: boolean;
    readonly label?: string;
}
/**
 * The signed-in user. Other calls of the service, such as `labelSession(_:)` and `deleteAccount(code:)`, are made with
 * `client.actor("auth")`; `refresh()` shows their changes. A refusal by the service is an error with `data`, such as `{ wrongCode: {
 * triesLeft: 4 } }`.
 */
export interface Auth extends Store<SignIn> {
    signInAsGuest(): Promise<User>;
    /** Sends a code of six digits by mail. */
    sendCode(email: string): Promise<{
        validSeconds: number;
    }>;
    verifyCode(email: string, code: string): Promise<User>;
    signInWithToken(idToken: string, provider: string, nonce?: string | null): Promise<User>;
    /** Signs out. Waiting writes are sent first, for up to 30 seconds. */
    signOut(): Promise<void>;
    /** Renews the session now. The session is renewed automatically for each connection whose access token would expire. */
    refresh(): Promise<User | undefined>;
    sessions(): Promise<SessionInfo[]>;
    endSession(id: string): Promise<void>;
    endOtherSessions(): Promise<number>;
}
export interface Peer<Presence = any> {
    /** The id of the membership; events that the peer publishes have it as `peer`. */
    readonly id: string;
    /** The user who is signed in at the peer. */
    readonly principal?: string;
    readonly data: Presence;
}
export interface RoomStatus {
    readonly phase: "joining" | "joined" | "left" | "failed";
    /** The reason why the room cannot be joined, or why the presence is not shown. */
    readonly error?: TrebuchetError;
    /** The number of events that the room had discarded before they could be read. */
    readonly missed: number;
    /**
     * How often the room has ended and was created again while this client was away, for example when the last member had left or a
     * server without a cluster was restarted. Events that were published meanwhile may be missing.
     */
    readonly restarts: number;
}
export interface RoomEvent<Payload = any> {
    readonly number: number;
    readonly topic: string;
    readonly peer: string;
    readonly payload: Payload;
}
export interface Room<Presence = any> {
    readonly name: string;
    /** The other members, in the order in which they joined. The array and its peers stay the same objects until they change. */
    readonly peers: Store<readonly Peer<Presence>[]>;
    readonly status: Store<RoomStatus>;
    /** The presence of this client. */
    readonly presence: Presence | null;
    /**
     * Changes the presence. With null the client shows no presence and is not among the peers. Fast changes are sent at the rate that the
     * server accepts.
     */
    set(presence: Presence | null): void;
    /** Changes members of the presence (RFC 7396); null removes a member. */
    patch(changes: object): void;
    /**
     * Publishes an event. Resolves with the event's number when the server has distributed it. `unknownOutcome`: the event may have been
     * published; it is not repeated.
     */
    publish(topic: string, payload: unknown): Promise<number>;
    /**
     * Subscribes to events of other members, of one topic or of all (null). Each event is delivered once and in order, also across
     * connections. Returns a function that ends the subscription.
     */
    subscribe(topic: string | null, listener: (event: RoomEvent) => void): () => void;
    /** Returns the room's history: of a topic or of all (null), after a number, at most the last `limit` events. */
    history(topic?: string | null, after?: number | null, limit?: number | null): Promise<RoomEvent[]>;
    /** Leaves the room. Resolves when the other members are notified. */
    leave(): Promise<void>;
}
export declare type Fields = {
    readonly id: string | number;
    readonly [name: string]: any;
};
/** A document: the app's `fields` and the server's metadata. */
export interface Document<Item = any> {
    readonly id: string;
    readonly fields: Item;
    readonly creator?: string;
    readonly created: number;
    readonly revision: number;
    readonly createdAt: number;
    readonly updatedAt: number;
    readonly expiresAt?: number;
}
export declare type Comparison = "equal" | "notEqual" | "in" | "less" | "lessOrEqual" | "greater" | "greaterOrEqual" | "prefix" | "contains";
/** A placeholder for the server's time of the write, in milliseconds since 1970. */
export interface ServerTime {
    readonly $serverTime: true;
}
/** The type to write for a field that is read as `Value`. A `Date` becomes its text, and the server's time a number. */
export declare type Written<Value> = Value | (number extends Value ? ServerTime : never) | (string extends Value ? Date : never);
/** The names of fields, of the app's document or of the server's metadata (`$createdAt`), and paths into fields, which are not checked. */
export declare type FieldPath<Item> = (keyof Item & string) | `${keyof Item & string}.${string}` | `${string}\\${string}` | `$${"creator" | "created" | "revision" | "createdAt" | "updatedAt"}`;
declare type Compared<Value> = Written<Value> | null | undefined;
/** Comparisons that must all hold. */
export interface Comparisons<Value = any> {
    readonly equal?: Compared<Value>;
    readonly notEqual?: Compared<Value>;
    readonly in?: readonly Compared<Value>[];
    readonly less?: Written<Value>;
    readonly lessOrEqual?: Written<Value>;
    readonly greater?: Written<Value>;
    readonly greaterOrEqual?: Written<Value>;
    readonly prefix?: string;
    readonly contains?: unknown;
}
/** Fields with their required values, or comparisons: `{ done: false, "address.city": { prefix: "B" }, $any: [{ … }, { … }] }`. */
export declare type Where<Item = any> = {
    readonly [Field in keyof Item & string]?: Compared<Item[Field]> | Comparisons<Item[Field]>;
} & {
    readonly [Path in Exclude<FieldPath<Item>, keyof Item>]?: unknown;
} & {
    readonly $any?: readonly Where<Item>[];
};
export interface QueryOptions<Item = any> {
    where?: Where<Item>;
    /** The fields to order by; a leading `-` means descending order. */
    order?: Order<Item> | readonly Order<Item>[];
    /** The maximum number of documents, from the first. */
    limit?: number;
    /** A cursor of `get`; the result begins after it. */
    after?: string;
    /** True if the status includes the total number of matching documents. */
    counts?: boolean;
}
export declare type Order<Item = any> = FieldPath<Item> | `-${FieldPath<Item>}`;
export interface QueryStatus {
    /** The phase, as of a stream. */
    readonly phase: "waiting" | "live" | "stale" | "failed";
    readonly error?: TrebuchetError;
    /** True if more documents match than the result contains. */
    readonly hasMore: boolean;
    readonly count?: number;
    /** The number of this client's writes to the collection without a response. */
    readonly pending: number;
}
/**
 * The documents that match a query, which include this client's own writes immediately. The result is kept up to date while it has
 * subscribers.
 */
export interface Query<Item = any> extends Store<readonly Item[] | undefined> {
    readonly status: Store<QueryStatus>;
    /** Returns a shown document with its metadata from the server. */
    document(id: string | number): Document<Item> | undefined;
}
/** A query that grows by pages, and is kept up to date as a whole. */
export interface Pages<Item = any> extends Query<Item> {
    /** Requests one more page; the current result stays until the page has arrived. */
    more(): void;
}
export interface Page<Item = any> {
    readonly revision: number;
    readonly documents: readonly Document<Item>[];
    /** The cursor for `after`; absent after the last page. */
    readonly cursor?: string;
    readonly count?: number;
}
/** The conditions on the document. If one does not hold, the write is refused with `{ conditionFailed: { id, revision, found } }`. */
export interface CommandOptions<Item = any> {
    /** The fields with their required values; null for absent fields. */
    if?: {
        readonly [Field in keyof Item]?: Item[Field] | null;
    };
    ifRevision?: number;
    ifAbsent?: boolean;
}
/** The fields of a new document. */
export declare type NewFields<Item> = {
    readonly [Field in keyof Item]: Written<Item[Field]>;
};
/** Null for an optional field: it removes the field. */
declare type Taken<Item, Field extends keyof Item> = {} extends Pick<Item, Field> ? null : never;
/** The fields to set. */
export declare type Changes<Item> = {
    readonly [Field in keyof Item]?: Written<Item[Field]> | Taken<Item, Field>;
};
/** The fields to change in part: objects by member, all other values as a whole. */
export declare type Patch<Item> = {
    readonly [Field in keyof Item]?: Patched<Item[Field]> | Taken<Item, Field>;
};
declare type Patched<Value> = Written<Value> | (Value extends readonly unknown[] ? never : Value extends object ? Patch<Value> : never);
export interface LinkOptions<Item = any> extends CommandOptions<Item> {
    /** The collection that must contain a document with the target's id. */
    in?: string;
}
/**
 * The methods that write. Promises of writes resolve when the server has performed them. Callers need not wait for them: refused writes are
 * also sent to `refused`.
 */
export interface Writes<Result, Item extends Fields = Fields> {
    create(fields: NewFields<Item>, options?: CommandOptions<Item> & {
        expiresIn?: number;
    }): Result;
    /** Sets the given fields and removes those that are null; the others stay. */
    update(id: string | number, fields: Changes<Item>, options?: CommandOptions<Item>): Result;
    /** Changes parts of fields (RFC 7396). */
    merge(id: string | number, fields: Patch<Item>, options?: CommandOptions<Item>): Result;
    increment(id: string | number, field: keyof Item & string, by?: number, options?: CommandOptions<Item>): Result;
    /** Adds a value to the array in a field, unless the array contains it. */
    link(id: string | number, field: keyof Item & string, target: unknown, options?: LinkOptions<Item>): Result;
    unlink(id: string | number, field: keyof Item & string, target: unknown, options?: CommandOptions<Item>): Result;
    /** Deletes the document after the given number of seconds; without `expiresIn` it does not expire. */
    expire(id: string | number, expiresIn?: number, options?: CommandOptions<Item>): Result;
    delete(id: string | number, options?: CommandOptions<Item>): Result;
    /** Changes nothing; its conditions are for transactions. */
    check(id: string | number, options?: CommandOptions<Item>): Result;
}
export interface Collection<Item extends Fields = Fields> extends Writes<Promise<void>, Item> {
    /** Returns a query: the same object for the same query. */
    query(options?: QueryOptions<Item>): Query<Item>;
    /** Returns a query that grows by pages of `limit` documents, default 20. */
    pages(options?: QueryOptions<Item>): Pages<Item>;
    /** Returns the documents that match now, once, without waiting writes: at most `limit`, and 1 MiB. */
    get(options?: QueryOptions<Item>): Promise<Page<Item>>;
    /**
     * Performs up to 100 writes atomically; without any it has no effect. The function must be synchronous. The error of a refused
     * transaction has the `index` of the refused write.
     */
    transaction(write: (transaction: Writes<void, Item>) => void): Promise<void>;
}
export interface RefusedWrite {
    readonly collection: string;
    /** The id of the document that could not be written, if it is known. */
    readonly id: string | undefined;
    /** The commands in their wire form. */
    readonly commands: readonly object[];
    readonly error: TrebuchetError;
}
/** A write that is persisted until the server has responded to it. */
export interface PersistedWrite {
    /** The secret of the tab that made the write; the server identifies writes by this and the number. It is confidential. */
    readonly secret: string;
    readonly number: number;
    readonly collection: string;
    /** The user's id; empty for an anonymous user. */
    readonly account: string;
    readonly commands: object[];
    /** The commands as text from the `json` coder, if that is not `JSON`; it replaces `commands`. */
    readonly json?: string;
    readonly time: number;
}
/** A store for waiting writes. */
export interface PendingStore {
    /** Resolves when the write is on the disk. */
    add(write: PersistedWrite): Promise<void>;
    remove(writes: readonly {
        readonly secret: string;
        readonly number: number;
    }[]): Promise<void>;
    all(): Promise<PersistedWrite[]>;
    /**
     * Claims the writes with this secret. Returns true if this tab sends them from now on, and false while a tab, including this one, has
     * claimed them. It is called once for each secret, and again after a write could not be persisted.
     */
    claim(secret: string): Promise<boolean>;
    /** Releases all claims. */
    close(): void;
}
export {};
/**
 * Returns a store that keeps writes in IndexedDB and holds a Web Lock for each secret of this tab. The browser releases the lock when the
 * tab ends, for any reason. Returns undefined if either API is unavailable. The implementation is trebuchet-offline.js, which is loaded on
 * first use.
 */
export declare function pendingStore(name: string, database?: any, locks?: any): PendingStore | undefined;
/** Connects to the services of a server, as `connect` does. Returns immediately, and retries until `close()`. */
export declare function services(url: string | URL, options?: ServicesOptions): Services;
