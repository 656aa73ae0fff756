import CPowerCut
import Glibc
import Platform
import Synchronization

/// A simulated disk that receives SQLite's file operations, loses power at one moment, and knows the remaining data.
final class Disk: Sendable {
    private struct State {
        var files: [String: DiskFile] = [:]
        /// Deleted files whose folder was not synced since.
        var deleted: [String: DiskFile] = [:]
        var events = 0
        /// The number of page writes to the database file among them.
        var moves = 0
        /// The operation that the power cut prevented.
        var cut: String?
    }

    private static let numbers = Atomic<Int>(0)

    /// The name of its SQLite VFS.
    let name: String
    private let honesty: Honesty
    private let cutAt: Int
    private let cutMove: Int?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - cutAt: the number of the write, truncation, sync or deletion that the power cut prevents.
    ///   - cutMove: the number of the page write from the log into the database file that it prevents.
    init(_ honesty: Honesty, cutAt: Int, cutMove: Int? = nil) {
        name = "power-cut-\(Self.numbers.add(1, ordering: .relaxed).newValue)"
        self.honesty = honesty
        self.cutAt = cutAt
        self.cutMove = cutMove
    }

    /// Makes the disk available to SQLite during `body`, which must close everything that it opens.
    func use<Value>(_ body: () async throws -> Value) async throws -> Value {
        // Not retained: this object lives at least until its VFS is removed.
        let context = Unmanaged.passUnretained(self).toOpaque()
        let way = power_cut_register(name, context) { context, kind, path, offset, bytes, count in
            guard let context, let path else { return 1 }
            let disk = Unmanaged<Disk>.fromOpaque(context).takeUnretainedValue()
            let bytes = UnsafeRawBufferPointer(start: bytes, count: Int(count))
            return disk.handleEvent(Int(kind), String(cString: path), Int(offset), bytes) ? 0 : 1
        }
        guard let way else { throw Failure(description: "SQLite rejected the VFS of the simulated disk") }
        defer { power_cut_unregister(way) }
        return try await body()
    }

    var isCut: Bool { state.withLock { $0.cut != nil } }

    /// The operation that the power cut prevented; nil while there is power.
    var cut: String? { state.withLock { $0.cut } }

    var events: Int { state.withLock { $0.events } }

    /// Cuts the power now, unless it is cut already.
    func cutNow() { state.withLock { if $0.cut == nil { $0.cut = "at rest" } } }

    /// True if the operation can be done; for `synchronous`, true if the setting stays.
    private func handleEvent(_ kind: Int, _ path: String, _ offset: Int, _ bytes: UnsafeRawBufferPointer) -> Bool {
        if kind == Int(power_cut_synchronous.rawValue) { return honesty != .unsynced || isDraft(path) }
        return state.withLock { state in
            guard state.cut == nil else { return false }
            if kind == Int(power_cut_open.rawValue) {
                open(path, &state)
                return true
            }
            state.events += 1
            if kind == Int(power_cut_write.rawValue), path.hasSuffix(".db") { state.moves += 1 }
            guard state.events < cutAt, state.moves < cutMove ?? .max else {
                state.cut = "\(Self.words[kind] ?? "?") \(path.split(separator: "/").last ?? "")"
                return false
            }
            switch kind {
            case Int(power_cut_write.rawValue): state.files[path]?.add(.write(at: offset, Array(bytes)))
            case Int(power_cut_truncate.rawValue): state.files[path]?.add(.truncate(offset))
            case Int(power_cut_sync.rawValue): sync(path, &state)
            default:
                state.deleted[path] = state.files.removeValue(forKey: path)
                if offset != 0 { state.deleted = [:] }
            }
            return true
        }
    }

    private static let words = [
        Int(power_cut_write.rawValue): "writing", Int(power_cut_truncate.rawValue): "truncating",
        Int(power_cut_sync.rawValue): "syncing", Int(power_cut_delete.rawValue): "deleting",
    ]

    /// A new store is created under another name, and renamed before it is opened; the folder is synced by then.
    private func isDraft(_ path: String) -> Bool { path.contains(".db-new") }

    private func open(_ path: String, _ state: inout State) {
        guard state.files[path] == nil else { return }
        state.files[path] = state.files.removeValue(forKey: path + "-new") ?? DiskFile()
    }

    private func sync(_ path: String, _ state: inout State) {
        // The draft is always durable, so that the effect of a lying disk shows in written data, not in a missing store.
        guard honesty != .lying || isDraft(path) else { return }
        // SQLite syncs the folder with a file that it has just created.
        if state.files[path]?.synced == nil { state.deleted = [:] }
        state.files[path]?.sync()
    }

    /// Files with writes that were not synced before the power cut.
    var unsynced: [String] { state.withLock { state in state.files.filter { !$0.value.changes.isEmpty }.map(\.key) } }

    /// Writes the files after the power cut into a folder, and returns the fate of unsynced writes.
    func rebuild(in folder: String, using random: inout RandomSource) throws -> Damage.Tally {
        let (files, deleted) = state.withLock { ($0.files, $0.deleted) }
        let damage = Damage(using: &random)
        var tally = Damage.Tally()
        for path in Set(files.keys).union(deleted.keys).sorted() {
            var bytes = files[path]?.remains(damage, &tally, using: &random)
            if let old = deleted[path], bytes == nil, damage.keeps(using: &random) {
                bytes = old.remains(damage, &tally, using: &random)
            }
            guard let bytes, let name = path.split(separator: "/").last else { continue }
            try Self.write(bytes, "\(folder)/\(name)")
        }
        return tally
    }

    private static func write(_ bytes: [UInt8], _ path: String) throws {
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure(description: "\(path): \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw Failure(description: "\(path): \(String(cString: strerror(errno)))") }
            rest = rest.dropFirst(count)
        }
    }
}

/// The behavior of a disk when a sync is requested.
package enum Honesty: String, Sendable, CaseIterable {
    /// The disk syncs.
    case honest
    /// The disk reports a sync without doing it, as some disks do.
    case lying
    /// No sync is requested: SQLite runs with `synchronous=OFF`, whatever the store sets.
    case unsynced
}

/// An error that prevents a trial.
struct Failure: Error, CustomStringConvertible {
    let description: String
}
