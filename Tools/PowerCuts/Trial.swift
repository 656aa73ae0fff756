import Glibc
import Platform
import Trebuchet
package import TrebuchetStore

/// One load with one power cut, and several random outcomes of it.
package struct Trial: Sendable {
    private let plan: Plan
    private let durability: SQLiteStore.Durability
    private let honesty: Honesty
    /// True if the files of a finding are preserved.
    private let keepsFiles: Bool

    package init(
        seed: UInt64, _ durability: SQLiteStore.Durability, _ honesty: Honesty = .honest, keepsFiles: Bool = false
    ) {
        plan = Plan(seed: seed)
        self.durability = durability
        self.honesty = honesty
        self.keepsFiles = keepsFiles
    }

    package func run() async throws -> Outcome {
        let folder = try Folder()
        defer { folder.remove() }
        let disk = Disk(honesty, cutAt: plan.cutAt, cutMove: plan.cutMove)
        let ledger = AcknowledgedWrites(writers: plan.writers)
        try await disk.use { try await write(disk, folder.path + "/data.db", ledger) }
        return try await judge(disk, ledger, lock: folder.path + "/data.db-lock")
    }

    /// Writes until the power cut, or until all batches are written.
    private func write(_ disk: Disk, _ path: String, _ ledger: AcknowledgedWrites) async throws {
        var options = SQLiteStore.Options()
        options.durability = durability
        options.wayToDisk = disk.name
        do {
            for batches in plan.incarnations where !disk.isCut {
                let store = try SQLiteStore(path: path, options: options)
                await withTaskGroup { group in
                    for writer in 0..<plan.writers {
                        group.addTask { await write(store, writer, batches, disk, ledger) }
                    }
                }
                await store.close()
            }
        } catch {
            guard disk.isCut else { throw Failure(description: "the store fails before the power cut: \(error)") }
        }
        disk.cutNow()
    }

    private func write(_ store: SQLiteStore, _ writer: Int, _ batches: Int, _ disk: Disk, _ ledger: AcknowledgedWrites)
        async
    {
        if let epoch = try? await store.readLog(plan.log(writer).key)?.snapshot.epoch { ledger.use(epoch, writer) }
        for _ in 0..<batches {
            let number = ledger.begin(writer)
            let writes = plan.batch(writer, number).stateWrites
            guard (try? await store.write(inIncarnation(of: plan.log(writer).key, writes, store))) != nil else {
                return
            }
            // Checked after the response: an acknowledgement before the cut must hold.
            guard !disk.isCut else { return }
            ledger.acknowledge(writer, number)
            // A reader prevents SQLite from restarting its log for a while.
            if number % 10 == 0 { _ = try? await store.get([Plan.mark(writer), Plan.shared]) }
        }
    }

    /// Each opening of a store starts an incarnation of its logs, which its snapshots belong to.
    private func inIncarnation(
        of key: StateKey, _ writes: [StateWrite], _ store: SQLiteStore
    ) async throws(StateStoreError) -> [StateWrite] {
        var changed: [StateWrite] = []
        for write in writes {
            guard case .snapshot(let snapshot) = write.operation,
                let epoch = try await store.readLog(key)?.snapshot.epoch
            else {
                changed.append(write)
                continue
            }
            changed.append(
                .snapshot(
                    LogSnapshot(
                        epoch: epoch, version: snapshot.version, partCount: snapshot.partCount, bytes: snapshot.bytes),
                    write.key))
        }
        return changed
    }

    /// - Parameter lock: the store's lock, which reappears beside one of the files.
    private func judge(_ disk: Disk, _ ledger: AcknowledgedWrites, lock: String) async throws -> Outcome {
        var outcome = Outcome()
        outcome.cut = disk.cut ?? ""
        outcome.events = disk.events
        outcome.acknowledged = ledger.entries.reduce(0) { $0 + $1.count { $0.acknowledged != nil } }
        outcome.cutsWhileMoving = disk.unsynced.contains { $0.hasSuffix("data.db") } ? 1 : 0
        var random = plan.random
        var judge = Judge(plan: plan, durability: durability, ledger)
        for number in 0..<3 where outcome.findings.isEmpty {
            let (folder, before) = (try Folder(), random)
            outcome.tally.add(try disk.rebuild(in: folder.path, using: &random))
            if number == 1 { rename(lock, folder.path + "/data.db-lock") }
            let (findings, batches) = await judge.look(at: folder.path + "/data.db")
            outcome.findings = findings
            outcome.batches.append(batches)
            if keepsFiles, !findings.isEmpty {
                folder.remove()
                outcome.savedFolder = try keep(disk, before)
            } else {
                folder.remove()
            }
        }
        return outcome
    }

    /// Writes the same files again, since a check changes them.
    private func keep(_ disk: Disk, _ random: RandomSource) throws -> String {
        let folder = try Folder()
        var random = random
        _ = try disk.rebuild(in: folder.path, using: &random)
        return folder.path
    }
}

/// The outcome of one trial, or of many.
package struct Outcome: Sendable, CustomStringConvertible {
    package var findings: [Finding] = []
    /// The operation that the power cut prevented.
    package var cut = ""
    package var events = 0
    package var acknowledged = 0
    /// The numbers of present batches, for each set of files.
    package var batches: [Int] = []
    /// Power cuts while pages were moved from the log into the file.
    package var cutsWhileMoving = 0
    package var whole: Int { tally.whole }
    package var torn: Int { tally.torn }
    package var dropped: Int { tally.dropped }
    var tally = Damage.Tally()
    /// The folder of the files of a finding.
    package var savedFolder: String?

    package init() {}

    package mutating func add(_ other: Outcome) {
        findings += other.findings
        events += other.events
        acknowledged += other.acknowledged
        batches += other.batches
        cutsWhileMoving += other.cutsWhileMoving
        tally.add(other.tally)
    }

    package var description: String {
        "\(events) steps, \(acknowledged) batches acknowledged, \(whole) writes whole, \(torn) torn, \(dropped) dropped"
    }
}

/// A temporary folder, until it is removed.
private struct Folder {
    let path: String

    init() throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/trebuchet-power-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure(description: "cannot create a folder in \(parent)") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func remove() {
        for name in ["data.db", "data.db-new", "data.db.schema1"] {
            for suffix in ["", "-wal", "-shm", "-lock", "-journal"] { unlink("\(path)/\(name)\(suffix)") }
        }
        rmdir(path)
    }
}
