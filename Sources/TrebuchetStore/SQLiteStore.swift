public import Trebuchet

/// A store in one SQLite file.
///
/// Writes that arrive together become one transaction (group commit), so that many writers cost hardly more than one. Two
/// threads serve a store, one for writes and one for reads; nobody else is blocked. Opening takes the file for this store
/// alone, and checks every page and entry of it: a file that is damaged in any way is refused.
public final class SQLiteStore: StateStore {
    /// What an acknowledged write outlasts.
    public enum Durability: Sendable, CaseIterable {
        /// The loss of power too: each transaction waits for the disk (`synchronous=FULL`).
        case powerLoss
        /// The end of the process, by `kill -9` too. The loss of power may take the last transactions, whole ones from the
        /// end, and harms nothing before them (`synchronous=NORMAL`).
        case processEnd
    }

    /// What a store promises, and what it takes.
    public struct Options: Sendable {
        /// Default `.powerLoss`.
        public var durability = Durability.powerLoss
        /// Bytes that the file may have; writes that need more fail with `full`. Default 64 GiB.
        public var fileSize = 64 << 30
        /// Bytes of one value; a larger one fails with `tooLarge`. Default 256 MiB, at most 900 MiB.
        public var valueSize = 256 << 20
        /// How long a write waits for another program that is writing to the file, before it fails with `inUse`.
        /// Default 5 s.
        public var busyTimeout = Duration.seconds(5)
        /// Is told how far opening has come: a second after it began, and each second from then on, on the thread that opens.
        /// Nil for nobody.
        public var onProgress: (@Sendable (StoreProgress) -> Void)?
        /// Between two of those.
        package var progressInterval = Duration.seconds(1)
        /// What SQLite reaches the disk by, as registered with it (a VFS); nil for its own. For those who try power cuts.
        package var wayToDisk: String?

        /// All options at their defaults.
        public init() {}
    }

    /// The file, as it was given.
    public let path: String
    private let valueSize: Int
    private let names: FileNames
    private let writer: WorkerThread<WriteRequest>
    private let reader: WorkerThread<ReadRequest>

    /// Opens the file, or makes it when there is none; its folder must be there.
    ///
    /// It blocks while it reads all of the file, a second for some hundred MB. Throws a `StateStoreError`.
    public init(path: String, options: Options = Options()) throws(StateStoreError) {
        self.path = path
        valueSize = min(options.valueSize, 900 << 20)
        let file = try StoreFile(path)
        let writing = try SQLiteWriter(file, options)
        let reading = try SQLiteReader(file, options, writing.generations)
        names = FileNames(of: ["", "-wal"].map { file.path + $0 })
        writer = WorkerThread("store-writer", whenIdle: { writing.sweep() }) { requests in writing.handle(requests) }
        reader = WorkerThread("store-reader") { requests in for request in requests { request(reading) } }
    }

    /// Opens the file as soon as no other process has it, so that a server that waits takes over from one that ends, in order or
    /// not. `onWait` is told once why it waits. Throws what `init` does but `inUse`, and `CancellationError`.
    public static func whenFree(
        path: String, options: Options = Options(), onWait: (StateStoreError) -> Void = { _ in }
    ) async throws -> SQLiteStore {
        var isTold = false
        while true {
            do throws(StateStoreError) {
                return try SQLiteStore(path: path, options: options)
            } catch {
                guard error.code == .inUse else { throw error }
                if !isTold { onWait(error) }
                isTold = true
            }
            try await Task.sleep(for: pause)
        }
    }

    /// Between two looks at whether the file is free.
    private static let pause = Duration.milliseconds(50)

    deinit {
        writer.stop {}
        reader.stop {}
    }

    /// Does what was asked before, merges the log into the file and lets go of it; what is asked later fails with `closed`.
    public func close() async {
        await withCheckedContinuation { continuation in reader.stop { continuation.resume() } }
        await withCheckedContinuation { continuation in writer.stop { continuation.resume() } }
    }

    private var closed: StateStoreError { StateStoreError(.closed, "\(path) was closed") }

    // MARK: StateStore

    /// Reads in one transaction: the values are of one moment. Waits for its turn on the reading thread.
    public func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
        try await read { reader throws(StateStoreError) in try reader.get(keys) }
    }

    /// Reads a page in one transaction; another page may be of a later moment.
    public func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        try await read { reader throws(StateStoreError) in
            try reader.list(namespace, prefix: prefix, after: after, limit: limit)
        }
    }

    /// Reads snapshot and changes in one transaction, and holds each row against its checksum.
    public func log(_ key: StateKey) async throws(StateStoreError) -> StoredLog? {
        try await read { reader throws(StateStoreError) in try reader.logs.log(key) }
    }

    private func read<Value: Sendable>(
        _ body: @escaping @Sendable (SQLiteReader) throws(StateStoreError) -> Value
    ) async throws(StateStoreError) -> Value {
        let outcome: Result<Value, StateStoreError> = await withCheckedContinuation { continuation in
            let isAccepted = reader.submit { reader in
                continuation.resume(returning: Result { () throws(StateStoreError) in try body(reader) })
            }
            if !isAccepted { continuation.resume(returning: .failure(closed)) }
        }
        return try outcome.get()
    }

    /// Returns when the transaction with these writes is committed, as durably as the options say. Throws `tooLarge` before
    /// anything is written when one value is too large.
    public func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        guard !writes.isEmpty else { return }
        for write in writes {
            guard write.byteCount <= valueSize else {
                throw StateStoreError(
                    .tooLarge, "\(write.key) has \(write.byteCount) bytes; \(path) takes \(valueSize)")
            }
            guard write.largestNumber <= Int64.max else {
                throw StateStoreError(
                    .tooLarge, "the log of \(write.key) is at \(write.largestNumber); \(path) counts up to \(Int64.max)"
                )
            }
        }
        let outcome: Result<Void, StateStoreError> = await withCheckedContinuation { continuation in
            let request = WriteRequest(writes: writes) { continuation.resume(returning: $0) }
            if !writer.submit(request) { continuation.resume(returning: .failure(closed)) }
        }
        try outcome.get()
    }
}

extension SQLiteStore: PlacedStore {
    /// Looks, on the reading thread, whether the names of the file and of its log still lead to those that are open: to one that was removed,
    /// or that another took the place of, all can be written, and nobody finds it again.
    package func checkPlace() async throws(StateStoreError) {
        let names = names
        try await read { _ throws(StateStoreError) in try names.check() }
    }
}

extension SQLiteStore: CatalogedStore {
    /// The namespaces with entries or logs, a page of them; read from the index, on the reading thread.
    public func namespaces(prefix: String, after: String?, limit: Int) async throws(StateStoreError) -> [String] {
        try await read { reader throws(StateStoreError) in
            try reader.namespaces(prefix: prefix, after: after, limit: limit)
        }
    }

    /// Goes through all entries and logs of the namespace, on the reading thread: for administrators, not for each call.
    public func usage(of namespace: String, prefix: String) async throws(StateStoreError) -> StoreUsage {
        try await read { reader throws(StateStoreError) in try reader.usage(of: namespace, prefix: prefix) }
    }
}

extension StateWrite {
    /// Of a version.
    fileprivate var largestNumber: UInt64 {
        switch operation {
        case .append(let entry): entry.number
        case .snapshotPart(_, _, let number): number
        case .snapshot(let snapshot): snapshot.number
        case .put, .delete, .deleteLog: 0
        }
    }
}

/// Writes that one caller wants done together.
struct WriteRequest: Sendable {
    let writes: [StateWrite]
    let answer: @Sendable (Result<Void, StateStoreError>) -> Void
}

typealias ReadRequest = @Sendable (SQLiteReader) -> Void
