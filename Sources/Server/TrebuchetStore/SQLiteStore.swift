internal import Synchronization
public import Trebuchet

/// A store in one SQLite file.
///
/// Concurrent writes are combined into one transaction (group commit), so that many writers cost hardly more than one.
/// Two threads serve a store, one for writes and one for reads; no other thread blocks. Opening locks the file
/// exclusively, and checks every page and entry: a damaged file is refused.
public final class SQLiteStore: StateStore {
    /// The failures that an acknowledged write survives.
    public enum Durability: Sendable, CaseIterable {
        /// Also a loss of power: each transaction waits for the disk (`synchronous=FULL`).
        case powerLoss
        /// The end of the process, including `kill -9`. A loss of power may remove the last transactions, as whole
        /// ones from the end, and damages nothing before them (`synchronous=NORMAL`).
        case processEnd
    }

    /// The guarantees and limits of a store.
    public struct Options: Sendable {
        /// The durability of writes. Default `.powerLoss`.
        public var durability = Durability.powerLoss
        /// The maximum size of the file in bytes; writes that need more fail with `full`. Default 64 GiB.
        public var fileSize = 64 << 30
        /// The maximum size of one value in bytes; a larger one fails with `tooLarge`. Default 256 MiB, at most 900
        /// MiB.
        public var valueSize = 256 << 20
        /// The maximum time that a write waits for another program that is writing to the file, before it fails with
        /// `inUse`. Default 5 s.
        public var busyTimeout = Duration.seconds(5)
        /// Receives the progress of opening: a second after its start, and each second from then on, on the thread
        /// that opens. Nil for no reports.
        public var onProgress: (@Sendable (StoreProgress) -> Void)?
        /// The time between two reports.
        package var progressInterval = Duration.seconds(1)
        /// The name of a registered SQLite VFS; nil for the default one. For tests of power loss.
        package var wayToDisk: String?

        /// Creates options with their defaults.
        public init() {}
    }

    /// The path of the file, as it was given.
    public let path: String
    private let valueSize: Int
    private let names: FileNames
    private let status: WriterStatus
    private let writer: WorkerThread<SQLiteWriter, WriteRequest>
    private let reader: WorkerThread<SQLiteReader, ReadRequest>

    /// Opens the file, or creates it. Its folder must exist.
    ///
    /// It blocks while it reads the whole file, about a second for some hundred MB. Throws a `StateStoreError`.
    public init(path: String, options: Options = Options()) throws(StateStoreError) {
        self.path = path
        valueSize = min(options.valueSize, 900 << 20)
        let file = try StoreFile(path)
        let writing = try SQLiteWriter(file, options)
        let reading = try SQLiteReader(file, options, writing.generations)
        (names, status) = (writing.names, writing.status)
        writer = WorkerThread("store-writer", writing, whenIdle: { $0.sweep() }) { $0.handle($1) }
        reader = WorkerThread("store-reader", reading) { reader, requests in
            for request in requests { request(reader) }
            return false
        }
    }

    /// Opens the file as soon as no other process has it, so that a waiting server takes over from one that ends,
    /// orderly or not. `onWait` receives the reason for the wait once. Throws the errors of `init` except `inUse`, and
    /// `CancellationError`.
    public static func waitUntilAvailable(
        path: String, options: Options = Options(), onWait: (StateStoreError) -> Void = { _ in }
    ) async throws -> SQLiteStore {
        var isReported = false
        while true {
            do throws(StateStoreError) {
                return try SQLiteStore(path: path, options: options)
            } catch {
                guard error.code == .inUse else { throw error }
                if !isReported { onWait(error) }
                isReported = true
            }
            try await Task.sleep(for: pause)
        }
    }

    /// The time between two attempts to open the file.
    private static let pause = Duration.milliseconds(50)

    deinit {
        writer.stop {}
        reader.stop {}
    }

    /// Completes earlier requests, merges the log into the file and releases it. Later requests fail with `closed`.
    public func close() async {
        await withCheckedContinuation { continuation in reader.stop { continuation.resume() } }
        await withCheckedContinuation { continuation in writer.stop { continuation.resume() } }
    }

    private var closed: StateStoreError { StateStoreError(.closed, "\(path) was closed") }

    // MARK: StateStore

    /// Reads in one transaction: the values belong to one moment. Waits for its turn on the reading thread.
    public func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
        try await read { reader throws(StateStoreError) in try reader.get(keys) }
    }

    /// Reads a page in one transaction. Another page may belong to a later moment.
    public func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        try await read { reader throws(StateStoreError) in
            try reader.list(namespace, prefix: prefix, after: after, limit: limit)
        }
    }

    /// Reads snapshot and changes in one transaction, and verifies the checksum of each row.
    public func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? {
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

    /// Returns when the transaction with these writes is committed, with the durability of the options, and the file and its
    /// log are in their places. Throws `tooLarge` before any write when one value is too large.
    public func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        guard !writes.isEmpty else { return }
        for write in writes {
            guard write.byteCount <= valueSize else {
                throw StateStoreError(
                    .tooLarge, "\(write.key) has \(write.byteCount) bytes; \(path) accepts at most \(valueSize)")
            }
            guard write.largestNumber <= Int64.max else {
                throw StateStoreError(
                    .tooLarge,
                    "the log of \(write.key) is at \(write.largestNumber); \(path) supports at most \(Int64.max)"
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

extension SQLiteStore: FileBackedStore {
    /// Checks, on the reading thread, that the paths of the file and of its log still lead to the open files, and that
    /// writes are not disabled.
    package func checkFileLocation() async throws(StateStoreError) {
        let (names, status) = (names, status)
        try await read { _ throws(StateStoreError) in
            if let failure = status.failure.withLock({ $0 }) { throw failure.disablingWrites }
            try names.check()
        }
    }
}

extension SQLiteStore: CatalogedStore {
    /// Returns a page of the namespaces with entries or logs, read from the index, on the reading thread.
    public func namespaces(prefix: String, after: String?, limit: Int) async throws(StateStoreError) -> [String] {
        try await read { reader throws(StateStoreError) in
            try reader.namespaces(prefix: prefix, after: after, limit: limit)
        }
    }

    /// Reads all entries and logs of the namespace, on the reading thread: for administrators, not for each call.
    public func usage(of namespace: String, prefix: String) async throws(StateStoreError) -> StoreUsage {
        try await read { reader throws(StateStoreError) in try reader.usage(of: namespace, prefix: prefix) }
    }
}

extension StateWrite {
    /// The largest version number in the write.
    fileprivate var largestNumber: UInt64 {
        switch operation {
        case .append(let entry): entry.version
        case .snapshotPart(_, _, let number): number
        case .snapshot(let snapshot): snapshot.version
        case .put, .delete, .deleteLog: 0
        }
    }
}

/// Writes that one caller requests in one transaction.
struct WriteRequest: Sendable {
    let writes: [StateWrite]
    let answer: @Sendable (Result<Void, StateStoreError>) -> Void

    var byteCount: Int { writes.reduce(0) { $0 + $1.byteCount } }
}

typealias ReadRequest = @Sendable (SQLiteReader) -> Void
