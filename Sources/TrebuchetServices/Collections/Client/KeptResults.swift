internal import Platform
internal import SharedState
internal import Synchronization
internal import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// What was read of collections, in files, to be shown again before the server says more.
///
/// A file is for one server, account, collection and query. Those that were not used for the longest time go when there are too
/// many, and one that is damaged or of somebody else is as none: nothing here is an error for anybody.
final class KeptResults: Sendable {
    private struct Contents {
        /// The newest result of each query that is to be written.
        var waiting: [KeptResult.Key: (account: ClientAccount, result: QueryResult, date: Date)] = [:]
        var isWriting = false
        var isClosed = false
    }

    /// Files; beside the limit of bytes.
    static let mostFiles = 1_000
    private static let suffix = ".result"

    private let folder: OfflineFolder
    private let place: URL
    private let server: String
    private let limit: Int
    private let pause: @Sendable () async -> Void
    private let log: @Sendable (String) -> Void
    private let contents = Mutex(Contents())
    /// Held while files are written and removed.
    private let files = Mutex(())

    /// - Parameters:
    ///   - limit: of all files together, in bytes.
    ///   - pause: between what is written.
    init(
        in folder: OfflineFolder, server: String, limit: Int, log: @escaping @Sendable (String) -> Void,
        pause: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: .seconds(1)) }
    ) {
        self.folder = folder
        place = folder.url.appendingPathComponent("results")
        self.server = server
        self.limit = limit
        self.pause = pause
        self.log = log
    }

    // MARK: Reading

    /// What was there when the server was last heard of; nil when nothing is kept of that.
    func result(of query: CollectionQuery, in collection: String, for account: ClientAccount) -> KeptResult? {
        let key = key(query, collection, account)
        let file = file(key)
        do {
            try folder.take()
            // Without the lock: a file is replaced as a whole, and who begins to read is not to wait for one that is written.
            guard let bytes = try PrivateFile.contents(file.path) else { return nil }
            guard let kept = KeptResult(bytes), kept.key == key else {
                log("\(file.path) is damaged and is removed; it is read again from the server")
                try files.withLock { _ in try FileManager.default.removeItem(at: file) }
                return nil
            }
            // The least recently used go first.
            try FileManager.default.setAttributes([.modificationDate: Date()], ofItemAtPath: file.path)
            return kept
        } catch {
            log("\(file.path) is not read: \(error)")
            return nil
        }
    }

    // MARK: Writing

    /// Keeps the newest result, a second later.
    ///
    /// - Parameter isCurrent: whether the account is still signed in.
    func keep(
        _ result: QueryResult, from date: Date, of query: CollectionQuery, in collection: String,
        for account: ClientAccount, if isCurrent: () -> Bool
    ) {
        let key = key(query, collection, account)
        let isFirst = contents.withLock { contents in
            // Asked under the lock: what an account has read is removed behind its end, not before.
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
        files.withLock { _ in
            var isChanged = false
            while let (key, (_, result, date)) = contents.withLock({ $0.waiting.popFirst() }) {
                write(
                    KeptResult(
                        key: key, syncedAt: date.timeIntervalSince1970, revision: result.revision,
                        documents: Array(result.documents), count: result.count, hasMore: result.hasMore))
                isChanged = true
            }
            if isChanged { removeLeastUsed() }
        }
    }

    private func write(_ kept: KeptResult) {
        let file = file(kept.key)
        do {
            try folder.take()
            let bytes = try kept.bytes
            if bytes.count <= limit {
                try bytes.withUnsafeBytes { try PrivateFile.replace(file.path, with: $0) }
            } else if FileManager.default.fileExists(atPath: file.path) {
                // Older than what is known, and there will be nothing newer.
                try FileManager.default.removeItem(at: file)
            }
        } catch {
            log("\(file.path) is not kept: \(error)")
        }
    }

    /// Removes what an account has read.
    func remove(of account: ClientAccount) {
        contents.withLock { contents in contents.waiting = contents.waiting.filter { $0.value.account != account } }
        let place = place.appendingPathComponent(Self.name(of: account))
        files.withLock { _ in
            guard FileManager.default.fileExists(atPath: place.path) else { return }
            do {
                try folder.take()
                try FileManager.default.removeItem(at: place)
            } catch {
                log("\(place.path) is not removed: \(error)")
            }
        }
    }

    /// Removes what all other accounts have read: one was signed in before that another process has signed out.
    func removeOthers(than account: ClientAccount) {
        let own = Self.name(of: account)
        files.withLock { _ in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? []
            // Whoever has the folder does it himself.
            guard names.contains(where: { $0 != own }), (try? folder.take()) != nil else { return }
            for name in names where name != own {
                let other = place.appendingPathComponent(name)
                do {
                    try FileManager.default.removeItem(at: other)
                } catch {
                    log("\(other.path) is not removed: \(error)")
                }
            }
        }
    }

    /// Writes what waits, and nothing more afterwards.
    func close() {
        contents.withLock { $0.isClosed = true }
        writeAll()
    }

    // MARK: The limit

    private struct Used {
        let file: URL
        let bytes: Int
        let date: Date
    }

    private func removeLeastUsed() {
        var files = filesInUse().sorted { $0.date < $1.date }[...]
        var bytes = files.reduce(0) { $0 + $1.bytes }
        while bytes > limit || files.count > Self.mostFiles, let oldest = files.popFirst() {
            bytes -= oldest.bytes
            do { try FileManager.default.removeItem(at: oldest.file) } catch { log("\(oldest.file.path): \(error)") }
        }
    }

    /// All files; what a crash has left half written goes at once.
    private func filesInUse() -> [Used] {
        let disk = FileManager.default
        let folders = (try? disk.contentsOfDirectory(atPath: place.path)) ?? []
        return folders.flatMap { folder in
            let folder = place.appendingPathComponent(folder)
            return ((try? disk.contentsOfDirectory(atPath: folder.path)) ?? []).compactMap { name -> Used? in
                let file = folder.appendingPathComponent(name)
                guard name.hasSuffix(Self.suffix) else {
                    try? disk.removeItem(at: file)
                    return nil
                }
                guard let attributes = try? disk.attributesOfItem(atPath: file.path) else { return nil }
                return Used(
                    file: file, bytes: attributes[.size] as? Int ?? 0,
                    date: attributes[.modificationDate] as? Date ?? .distantPast)
            }
        }
    }

    // MARK: Names

    private static func name(of account: ClientAccount) -> String {
        switch account {
        case .user: account.folder ?? "user"
        case .nobody: "nobody"
        case .client: "client"
        }
    }

    private func key(_ query: CollectionQuery, _ collection: String, _ account: ClientAccount) -> KeptResult.Key {
        KeptResult.Key(server: server, account: Self.name(of: account), collection: collection, query: query)
    }

    private func file(_ key: KeptResult.Key) -> URL {
        var digest = StableDigest()
        // One that does not encode cannot be asked either.
        digest.combine((try? JSONValue(encoding: key)) ?? .null)
        return place.appendingPathComponent(key.account)
            .appendingPathComponent(String(digest.value, radix: 16) + Self.suffix)
    }
}
