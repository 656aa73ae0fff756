import type { Client, ConnectOptions, Store, TrebuchetError } from "./trebuchet.js";
export interface ServicesOptions extends Omit<ConnectOptions, "token"> {
    /** Keeps the session over reloads, for all tabs: `localStorage`. Whoever reads it is the user. Default none: in memory alone. */
    storage?: SessionStorage;
    /** What the session is called there. Default `trebuchet:` and the server's address. */
    storageKey?: string;
    /**
     * Keeps writes that wait over reloads. Default: IndexedDB, where there is one, with Web Locks, which pages have that came over
     * https or from this host. `null`: in memory alone.
     */
    pending?: PendingStore | null;
    /** Writes of each collection that may wait; one more is refused. Default 1,000. */
    pendingWrites?: number;
    /** Hears of each write that was refused and taken back, also of those that were made before a reload. */
    refused?: (write: RefusedWrite) => void;
}
/** A part of the DOM's `Storage`. */
export interface SessionStorage {
    getItem(key: string): string | null;
    setItem(key: string, value: string): void;
    removeItem(key: string): void;
}
/** A server of the services. */
export interface Services {
    readonly client: Client;
    readonly auth: Auth;
    /** A room, which is joined now, until `leave()`; the same one for all who ask. */
    room<Presence = any>(name: string, presence?: Presence | null): Room<Presence>;
    /** Rooms of a type that somebody is in, after a name. */
    rooms(type: string, after?: string | null, limit?: number): Promise<{
        name: string;
        members: number;
    }[]>;
    collection<Item extends Fields = Fields>(name: string): Collection<Item>;
    /** Ends everything. Writes that are kept are sent by the next one. */
    close(): void;
}
export interface User {
    readonly id: string;
    readonly isGuest: boolean;
    readonly email?: string;
    readonly roles?: readonly string[];
}
export interface SignIn {
    /** `loading`: somebody was signed in, and the server has not said yet whether that is so. */
    readonly phase: "loading" | "signedIn" | "signedOut";
    readonly user?: User;
    /** Why a session has ended, when that was not asked for here: `elsewhere`, `expired` and others. */
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
 * Who is signed in. Other calls of the service, as `labelSession(_:)` and `deleteAccount(code:)`, are made with `client.actor("auth")`, and
 * `refresh()` shows what they have changed. What the service refuses is an error with `data`, as `{ wrongCode: { triesLeft: 4 } }`.
 */
export interface Auth extends Store<SignIn> {
    signInAsGuest(): Promise<User>;
    /** Sends a code of six digits by mail. */
    sendCode(email: string): Promise<{
        validSeconds: number;
    }>;
    verifyCode(email: string, code: string): Promise<User>;
    signInWithToken(idToken: string, provider: string, nonce?: string | null): Promise<User>;
    /** Writes that wait are sent before, for up to 30 seconds. */
    signOut(): Promise<void>;
    /** Renews the session now. It is renewed by itself for each connection whose access token would not last. */
    refresh(): Promise<User | undefined>;
    sessions(): Promise<SessionInfo[]>;
    endSession(id: string): Promise<void>;
    endOtherSessions(): Promise<number>;
}
export interface Peer<Presence = any> {
    /** Of its session: what it publishes has it as `peer`. */
    readonly id: string;
    /** The user who is signed in there. */
    readonly principal?: string;
    readonly data: Presence;
}
export interface RoomStatus {
    readonly phase: "joining" | "joined" | "left" | "failed";
    /** Why it cannot be joined, or why the presence is not shown. */
    readonly error?: TrebuchetError;
    /** Events that the room had forgotten before they could be read. */
    readonly missed: number;
}
export interface RoomEvent<Payload = any> {
    readonly number: number;
    readonly topic: string;
    readonly peer: string;
    readonly payload: Payload;
}
export interface Room<Presence = any> {
    readonly name: string;
    /** The others, in the order in which they came. The same array, and the same peers in it, until they change. */
    readonly peers: Store<readonly Peer<Presence>[]>;
    readonly status: Store<RoomStatus>;
    /** What this client shows. */
    readonly presence: Presence | null;
    /** Shows something else; null for nothing, and then one is not among the peers. What changes fast is sent as fast as the server takes it. */
    set(presence: Presence | null): void;
    /** Changes members of what is shown (RFC 7396): null takes one away. */
    patch(changes: object): void;
    /** Resolves with the event's number, when the server has handed it on. `unknownOutcome`: nobody knows; it is not repeated. */
    publish(topic: string, payload: unknown): Promise<number>;
    /** Events of others, of one topic or all (null): each once and in order, also across connections. Gives what ends it. */
    subscribe(topic: string | null, listener: (event: RoomEvent) => void): () => void;
    /** What the room remembers: of a topic or of all (null), after a number, the last so many. */
    history(topic?: string | null, after?: number | null, limit?: number | null): Promise<RoomEvent[]>;
    /** Resolves when the others know. */
    leave(): Promise<void>;
}
export declare type Fields = {
    readonly id: string | number;
    readonly [name: string]: any;
};
/** A document: the app's `fields`, and what the server knows. */
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
/** Becomes the time at the server when it is written, in milliseconds since 1970. */
export interface ServerTime {
    readonly $serverTime: true;
}
/** What is written so that `Value` is read: a `Date` becomes its text, the server's time a number. */
export declare type Written<Value> = Value | (number extends Value ? ServerTime : never) | (string extends Value ? Date : never);
/** Names of fields, of the app's document or of what the server knows (`$createdAt`), and paths to what is in them, which are not checked. */
export declare type FieldPath<Item> = (keyof Item & string) | `${keyof Item & string}.${string}` | `${string}\\${string}` | `$${"id" | "creator" | "created" | "revision" | "createdAt" | "updatedAt" | "expiresAt"}`;
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
/** Fields and the values that they have, or comparisons: `{ done: false, "address.city": { prefix: "B" }, $any: [{ … }, { … }] }`. */
export declare type Where<Item = any> = {
    readonly [Field in keyof Item & string]?: Compared<Item[Field]> | Comparisons<Item[Field]>;
} & {
    readonly [Path in Exclude<FieldPath<Item>, keyof Item>]?: unknown;
} & {
    readonly $any?: readonly Where<Item>[];
};
export interface QueryOptions<Item = any> {
    where?: Where<Item>;
    /** Fields to order by; one with `-` before it is in descending order. */
    order?: Order<Item> | readonly Order<Item>[];
    /** At most so many, from the first. */
    limit?: number;
    /** A cursor of `get`: what stands behind it. */
    after?: string;
    /** Whether the status says how many match in all. */
    counts?: boolean;
}
export declare type Order<Item = any> = FieldPath<Item> | `-${FieldPath<Item>}`;
export interface QueryStatus {
    /** As of a stream. */
    readonly phase: "waiting" | "live" | "stale" | "failed";
    readonly error?: TrebuchetError;
    /** More match than are here. */
    readonly hasMore: boolean;
    readonly count?: number;
    /** Writes of this client to the collection that the server has not answered. */
    readonly pending: number;
}
/** What matches a query, with this client's own writes in it at once. Kept up to date while anybody subscribes. */
export interface Query<Item = any> extends Store<readonly Item[] | undefined> {
    readonly status: Store<QueryStatus>;
    /** What the server knows of one that is shown. */
    document(id: string | number): Document<Item> | undefined;
}
/** A query that grows by pages, and is kept up to date as a whole. */
export interface Pages<Item = any> extends Query<Item> {
    /** Asks for one page more; what is shown stays until it is there. */
    more(): void;
}
export interface Page<Item = any> {
    readonly revision: number;
    readonly documents: readonly Document<Item>[];
    /** For `after`; absent behind the last page. */
    readonly cursor?: string;
    readonly count?: number;
}
/** What must hold for the document; else the write is refused with `{ conditionFailed: { id, revision, found } }`. */
export interface CommandOptions<Item = any> {
    /** Fields and the values that they must have; null for absent ones. */
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
/** What may be absent is taken away with null. */
declare type Taken<Item, Field extends keyof Item> = {} extends Pick<Item, Field> ? null : never;
/** Fields to be set. */
export declare type Changes<Item> = {
    readonly [Field in keyof Item]?: Written<Item[Field]> | Taken<Item, Field>;
};
/** Fields to be changed in parts: members of objects, and all else as a whole. */
export declare type Patch<Item> = {
    readonly [Field in keyof Item]?: Patched<Item[Field]> | Taken<Item, Field>;
};
declare type Patched<Value> = Written<Value> | (Value extends readonly unknown[] ? never : Value extends object ? Patch<Value> : never);
export interface LinkOptions<Item = any> extends CommandOptions<Item> {
    /** The collection that must have a document with the id that is linked to. */
    in?: string;
}
/** Results of writes are promises that resolve when the server has done them, and need not be waited for: what is refused goes to `refused`, too. */
export interface Writes<Result, Item extends Fields = Fields> {
    create(fields: NewFields<Item>, options?: CommandOptions<Item> & {
        expiresIn?: number;
    }): Result;
    /** Sets these fields and takes away those with null; the others stay. */
    update(id: string | number, fields: Changes<Item>, options?: CommandOptions<Item>): Result;
    /** Changes parts of fields (RFC 7396). */
    merge(id: string | number, fields: Patch<Item>, options?: CommandOptions<Item>): Result;
    increment(id: string | number, field: keyof Item & string, by?: number, options?: CommandOptions<Item>): Result;
    /** Adds a value to the array in a field, unless it is there. */
    link(id: string | number, field: keyof Item & string, target: unknown, options?: LinkOptions<Item>): Result;
    unlink(id: string | number, field: keyof Item & string, target: unknown, options?: CommandOptions<Item>): Result;
    /** Lets it go after so many seconds; without them it stays. */
    expire(id: string | number, expiresIn?: number, options?: CommandOptions<Item>): Result;
    delete(id: string | number, options?: CommandOptions<Item>): Result;
    /** Changes nothing; for transactions. */
    check(id: string | number, options?: CommandOptions<Item>): Result;
}
export interface Collection<Item extends Fields = Fields> extends Writes<Promise<void>, Item> {
    /** The same object for the same query. */
    query(options?: QueryOptions<Item>): Query<Item>;
    /** By pages of `limit`, default 20. */
    pages(options?: QueryOptions<Item>): Pages<Item>;
    /** What matches now, once, without writes that wait: at most `limit`, and 1 MiB. */
    get(options?: QueryOptions<Item>): Promise<Page<Item>>;
    /** Up to 100 writes, done all at once or not at all. */
    transaction(write: (transaction: Writes<void, Item>) => void): Promise<void>;
}
export interface RefusedWrite {
    readonly collection: string;
    /** The id of the document that could not be written, where that is known. */
    readonly id: string | undefined;
    /** As they went over the wire. */
    readonly commands: readonly object[];
    readonly error: TrebuchetError;
}
/** A write that is kept until the server has answered it. */
export interface KeptWrite {
    /** Of the tab that has made it: the server tells its writes by this and the number. A secret. */
    readonly secret: string;
    readonly number: number;
    readonly collection: string;
    /** The user's id; empty for nobody. */
    readonly account: string;
    readonly commands: object[];
    /** In place of the commands, where `json` is another than `JSON`: what that has written. */
    readonly json?: string;
    readonly time: number;
}
/** Keeps writes that wait. */
export interface PendingStore {
    /** Resolves when it is on the disk. */
    add(write: KeptWrite): Promise<void>;
    remove(writes: readonly {
        readonly secret: string;
        readonly number: number;
    }[]): Promise<void>;
    all(): Promise<KeptWrite[]>;
    /** Whether writes with this secret are this tab's to send from now on: false while a tab, this one too, has claimed it already. Asked once for each, and again where something could not be kept. */
    claim(secret: string): Promise<boolean>;
    /** Gives up all that was claimed. */
    close(): void;
}
export {};
/**
 * Keeps writes in IndexedDB, and holds a Web Lock for each secret that is this tab's: the system gives it back when the tab is gone,
 * however that came. Undefined where there are none. What does so is trebuchet-offline.js, which is loaded when there is something to do.
 */
export declare function pendingStore(name: string, database?: any, locks?: any): PendingStore | undefined;
/** Connects to the services of a server, as `connect` does. Returns at once, and goes on until `close()`. */
export declare function services(url: string | URL, options?: ServicesOptions): Services;
