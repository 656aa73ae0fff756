import CPowerCut
import Glibc
import Platform
import Synchronization

/// A disk that is told all that SQLite does to its files, loses its power at some moment, and knows what is left then.
final class Disk: Sendable {
    private struct State {
        var files: [String: DiskFile] = [:]
        /// Files that were deleted, whose folder was not synced since.
        var deleted: [String: DiskFile] = [:]
        var events = 0
        /// Of these, writes of pages into the database's own file.
        var moves = 0
        /// What was asked for when the power went.
        var cut: String?
    }

    private static let numbers = Atomic<Int>(0)

    /// By which SQLite finds the way to it.
    let name: String
    private let honesty: Honesty
    private let cutAt: Int
    private let cutMove: Int?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - cutAt: the number of the write, truncation, sync or deletion that finds no power any more.
    ///   - cutMove: the same for writes of pages from the log into the database's own file alone.
    init(_ honesty: Honesty, cutAt: Int, cutMove: Int? = nil) {
        name = "power-cut-\(Self.numbers.add(1, ordering: .relaxed).newValue)"
        self.honesty = honesty
        self.cutAt = cutAt
        self.cutMove = cutMove
    }

    /// Lets SQLite reach it meanwhile. What `body` opens has to be closed when it returns.
    func use<Value>(_ body: () async throws -> Value) async throws -> Value {
        // Not retained: this object lives at least until the way to it is taken away.
        let context = Unmanaged.passUnretained(self).toOpaque()
        let way = power_cut_register(name, context) { context, kind, path, offset, bytes, count in
            guard let context, let path else { return 1 }
            let disk = Unmanaged<Disk>.fromOpaque(context).takeUnretainedValue()
            let bytes = UnsafeRawBufferPointer(start: bytes, count: Int(count))
            return disk.told(Int(kind), String(cString: path), Int(offset), bytes) ? 0 : 1
        }
        guard let way else { throw Failure(description: "SQLite takes no way to a disk") }
        defer { power_cut_unregister(way) }
        return try await body()
    }

    var isCut: Bool { state.withLock { $0.cut != nil } }

    /// What was asked for when the power went; nil while it is there.
    var cut: String? { state.withLock { $0.cut } }

    var events: Int { state.withLock { $0.events } }

    /// The power goes now, if it has not gone before.
    func cutNow() { state.withLock { if $0.cut == nil { $0.cut = "at rest" } } }

    /// Whether what is asked for can be done; of `synchronous`, whether it stays as it is.
    private func told(_ kind: Int, _ path: String, _ offset: Int, _ bytes: UnsafeRawBufferPointer) -> Bool {
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

    /// A new store is made under another name, and renamed before it is opened; the folder is synced by then.
    private func isDraft(_ path: String) -> Bool { path.contains(".db-new") }

    private func open(_ path: String, _ state: inout State) {
        guard state.files[path] == nil else { return }
        state.files[path] = state.files.removeValue(forKey: path + "-new") ?? DiskFile()
    }

    private func sync(_ path: String, _ state: inout State) {
        // The draft is safe in any case, so that what a lie costs is seen in what was written, not in a store without a beginning.
        guard honesty != .lying || isDraft(path) else { return }
        // SQLite syncs the folder with a file that it has just made.
        if state.files[path]?.synced == nil { state.deleted = [:] }
        state.files[path]?.sync()
    }

    /// Files of which something was written and not synced when the power went.
    var unsynced: [String] { state.withLock { state in state.files.filter { !$0.value.changes.isEmpty }.map(\.key) } }

    /// Puts into a folder what is found after the power cut, and tells what became of what was not synced.
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

/// What a disk makes of being asked to sync.
package enum Honesty: String, Sendable, CaseIterable {
    /// It does.
    case honest
    /// It says that it did, and did not: some disks are built so.
    case lying
    /// It is not asked: SQLite runs with `synchronous=OFF`, whatever the store wants.
    case unsynced
}

/// What keeps a trial from being made.
struct Failure: Error, CustomStringConvertible {
    let description: String
}
