internal import Platform
internal import SharedState
internal import Synchronization
internal import TrebuchetClient

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Stores results of queries in files, to show them after a restart before the server responds.
///
/// Each server, account, collection and query has a separate file. The least recently used files are removed above the limits,
/// and a damaged or foreign file is ignored: no failure here is an error for the app.
final class QueryResultCache: Sendable {
    private struct Contents {
        /// The newest result of each query that must be written.
        var waiting: [CachedQueryResult.Key: (account: ClientAccount, result: QueryResult, date: Date)] = [:]
        var isWriting = false
        var isClosed = false
    }

    /// The maximum number of files, in addition to the limit in bytes.
    static let maximumFiles = 1_000
    private static let suffix = ".result"

    private let folder: OfflineFolder
    private let resultsFolder: URL
    private let server: String
    private let limit: Int
    private let pause: @Sendable () async -> Void
    private let log: @Sendable (String) -> Void
    private let contents = Mutex(Contents())
    /// Held while files are written and removed.
    private let fileLock = Mutex(())

    /// - Parameters:
    ///   - limit: the maximum size of all files together, in bytes.
    ///   - pause: waits between two writes.
    init(
        in folder: OfflineFolder, server: String, limit: Int, log: @escaping @Sendable (String) -> Void,
        pause: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: .seconds(1)) }
    ) {
        self.folder = folder
        resultsFolder = folder.url.appendingPathComponent("results")
        self.server = server
        self.limit = limit
        self.pause = pause
        self.log = log
    }

    // MARK: Reading

    /// Returns the last known result; nil when none is stored.
    func result(of query: CollectionQuery, in collection: String, for account: ClientAccount) -> CachedQueryResult? {
        let key = key(query, collection, account)
        let file = file(key)
        do {
            try folder.lock()
            // Without the lock: a file is replaced atomically, and a reader must not wait for a write.
            guard let bytes = try PrivateFile.contents(file.path) else { return nil }
            guard let cached = CachedQueryResult(bytes), cached.key == key else {
                log("\(file.path) is damaged and was removed; the data is read from the server")
                try fileLock.withLock { _ in try FileManager.default.removeItem(at: file) }
                return nil
            }
            // Marks the file as used, because the least recently used files are removed first.
            try FileManager.default.setAttributes([.modificationDate: Date()], ofItemAtPath: file.path)
            return cached
        } catch {
            log("reading \(file.path) failed: \(error)")
            return nil
        }
    }

    // MARK: Writing

    /// Stores the newest result, a second later.
    ///
    /// - Parameter isCurrent: returns whether the account is still signed in.
    func storeResult(
        _ result: QueryResult, from date: Date, of query: CollectionQuery, in collection: String,
        for account: ClientAccount, if isCurrent: () -> Bool
    ) {
        let key = key(query, collection, account)
        let isFirst = contents.withLock { contents in
            // Checked under the lock, so that a result of a signed-out account is never written after its removal.
            guard !contents.isClosed, isCurrent() else { return false }
            contents.waiting[key] = (account, result, date)
            defer { contents.isWriting = true }
            return !contents.isWriting
        }
        guard isFirst else { return }
        Task.detached(priority: .utility) { [self] in
            await pause()
            contents.withLock { $0.isWriting = false }
            writeAll()
        }
    }

    private func writeAll() {
        fileLock.withLock { _ in
            var isChanged = false
            while let (key, (_, result, date)) = contents.withLock({ $0.waiting.popFirst() }) {
                write(
                    CachedQueryResult(
                        key: key, syncedAt: date.timeIntervalSince1970, revision: result.revision,
                        documents: Array(result.documents), count: result.count, hasMore: result.hasMore))
                isChanged = true
            }
            if isChanged { removeLeastUsed() }
        }
    }

    private func write(_ cached: CachedQueryResult) {
        let file = file(cached.key)
        do {
            try folder.lock()
            let bytes = try cached.bytes
            if bytes.count <= limit {
                try bytes.withUnsafeBytes { try PrivateFile.replace(file.path, with: $0) }
            } else if FileManager.default.fileExists(atPath: file.path) {
                // The file is older than the known result, and no newer one will be written.
                try FileManager.default.removeItem(at: file)
            }
        } catch {
            log("writing \(file.path) failed: \(error)")
        }
    }

    /// Removes the results of an account.
    func remove(of account: ClientAccount) {
        contents.withLock { contents in contents.waiting = contents.waiting.filter { $0.value.account != account } }
        let accountFolder = resultsFolder.appendingPathComponent(Self.name(of: account))
        fileLock.withLock { _ in
            guard FileManager.default.fileExists(atPath: accountFolder.path) else { return }
            do {
                try folder.lock()
                try FileManager.default.removeItem(at: accountFolder)
            } catch {
                log("removing \(accountFolder.path) failed: \(error)")
            }
        }
    }

    /// Removes the results of all other accounts, because another process may have signed one of them out.
    func removeAll(except account: ClientAccount) {
        let own = Self.name(of: account)
        fileLock.withLock { _ in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: resultsFolder.path)) ?? []
            // The process that has the folder removes them.
            guard names.contains(where: { $0 != own }), (try? folder.lock()) != nil else { return }
            for name in names where name != own {
                let other = resultsFolder.appendingPathComponent(name)
                do {
                    try FileManager.default.removeItem(at: other)
                } catch {
                    log("removing \(other.path) failed: \(error)")
                }
            }
        }
    }

    /// Writes pending results, and accepts no more.
    func close() {
        contents.withLock { $0.isClosed = true }
        writeAll()
    }

    // MARK: Limits

    private struct UsageEntry {
        let file: URL
        let bytes: Int
        let date: Date
    }

    private func removeLeastUsed() {
        var files = filesInUse().sorted { $0.date < $1.date }[...]
        var bytes = files.reduce(0) { $0 + $1.bytes }
        while bytes > limit || files.count > Self.maximumFiles, let oldest = files.popFirst() {
            bytes -= oldest.bytes
            do { try FileManager.default.removeItem(at: oldest.file) } catch { log("\(oldest.file.path): \(error)") }
        }
    }

    /// Returns all files, and removes those that a crash has left incomplete.
    private func filesInUse() -> [UsageEntry] {
        let disk = FileManager.default
        let folders = (try? disk.contentsOfDirectory(atPath: resultsFolder.path)) ?? []
        return folders.flatMap { folder in
            let folder = resultsFolder.appendingPathComponent(folder)
            return ((try? disk.contentsOfDirectory(atPath: folder.path)) ?? []).compactMap { name -> UsageEntry? in
                let file = folder.appendingPathComponent(name)
                guard name.hasSuffix(Self.suffix) else {
                    try? disk.removeItem(at: file)
                    return nil
                }
                guard let attributes = try? disk.attributesOfItem(atPath: file.path) else { return nil }
                return UsageEntry(
                    file: file, bytes: attributes[.size] as? Int ?? 0,
                    date: attributes[.modificationDate] as? Date ?? .distantPast)
            }
        }
    }

    // MARK: Names

    private static func name(of account: ClientAccount) -> String {
        switch account {
        case .user: account.folder ?? "user"
        case .signedOut: "nobody"
        case .client: "client"
        }
    }

    private func key(_ query: CollectionQuery, _ collection: String, _ account: ClientAccount) -> CachedQueryResult.Key
    {
        CachedQueryResult.Key(server: server, account: Self.name(of: account), collection: collection, query: query)
    }

    private func file(_ key: CachedQueryResult.Key) -> URL {
        var digest = StableDigest()
        // A query that does not encode cannot be sent either.
        let text = (try? JSONValue(encoding: key))?.json ?? []
        text.withUnsafeBytes { digest.combine(words: $0) }
        return resultsFolder.appendingPathComponent(key.account)
            .appendingPathComponent(String(digest.value, radix: 16) + Self.suffix)
    }
}
