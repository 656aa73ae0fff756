import Commands
import Glibc
import Platform
import Trebuchet
import TrebuchetStore

/// `trebuchet backup`: copies the file of a store, also while a server uses it.
enum BackupCommand {
    static let spec = CommandSpec(
        name: "backup",
        summary: "copy the file of a store, also while a server uses it, and check the copy",
        operands: "<file>",
        operandCount: 1...1,
        options: [
            OptionSpec("--to", "PATH", "new file, or a folder, in which the time names the backup"),
            OptionSpec(
                "--keep", "N", "with a folder: keep the newest N backups of this file, remove older ones (all)",
                form: .integer(1...100_000)),
        ],
        discussion: """
            Writes of the server go on meanwhile; the copy has the content of the moment at which it began. It is one file with
            mode 0600, and has its name only when it is complete and checked. An existing file is never overwritten.
            Prints the path of the backup, and progress on standard error:
              trebuchet backup trebuchet.db --to /var/backups/trebuchet --keep 14
            See Docs/Guides/Persistence.md. A coordination store in Redis is backed up with Redis: Docs/Guides/Cluster.md.
            """,
        run: run)

    private static func run(_ arguments: ParsedArguments) async throws {
        try arguments.validate()
        let file = try StoreOperand.file(arguments.operands[0])
        guard let destination = arguments.string("--to"), !destination.isEmpty else {
            throw UsageError("the destination is missing: pass --to PATH, a new file or a folder")
        }
        let folder = BackupFolder(destination, of: file)
        guard folder != nil || !arguments.has("--keep") else {
            throw UsageError("--keep requires a folder that exists; '\(LogLine.of(destination))' is none")
        }
        let target = folder?.newPath() ?? destination
        let interruption = StoreInterruption()
        _ = try await onThread { () throws(StateStoreError) in
            try StoreCopy.backUp(file, to: target) { step, percent, bytes in
                StoreOperand.report("backup", step.rawValue, file, percent, bytes)
            }
        }
        interruption.end()
        Console.print(target)
        if let folder, let count = try arguments.int("--keep") {
            for path in folder.removeAll(butNewest: count) { Console.error("trebuchet backup: removed \(path)") }
        }
    }
}

/// `trebuchet restore`: creates the file of a store from a backup.
enum RestoreCommand {
    static let spec = CommandSpec(
        name: "restore",
        summary: "check a backup, and create the file of a store from it",
        operands: "<backup>",
        operandCount: 1...1,
        options: [OptionSpec("--to", "FILE", "the file for --data of the server, which must not exist")],
        discussion: """
            Stop the server first, and move the old file away together with its -wal and -shm:
              trebuchet restore backup.db --to /var/lib/trebuchet/trebuchet.db
            Clients that have seen later versions than the backup has are sent the restored state. As root, the file gets the
            owner of its folder. See Docs/Guides/Persistence.md.
            """,
        run: run)

    private static func run(_ arguments: ParsedArguments) async throws {
        let backup = try StoreOperand.file(arguments.operands[0])
        guard let target = arguments.string("--to"), !target.isEmpty else {
            throw UsageError("the destination is missing: pass --to FILE, the file for --data of the server")
        }
        let interruption = StoreInterruption()
        let size = try await onThread { () throws(StateStoreError) in
            try StoreCopy.restore(backup, to: target) { step, percent, bytes in
                StoreOperand.report("restore", step.rawValue, backup, percent, bytes)
            }
        }
        interruption.end()
        Console.print("restored \(target) (\(TopMetricsView.bytes(Double(size)))); the server can be started")
    }
}

/// Removes an incomplete copy when SIGINT or SIGTERM ends the command.
struct StoreInterruption {
    private let signals: [ShutdownSignals]

    init() {
        signals = [ProcessSignal.interrupt, .terminate].map { signal in
            let signals = ShutdownSignals([signal])
            signals.onFirst {
                StoreCopy.removeIncomplete()
                exit(128 + signal.number)
            }
            return signals
        }
    }

    /// Lets signals end the process again.
    func end() { for each in signals { each.restoreHandlers() } }
}

/// The operand of the commands for files of stores.
enum StoreOperand {
    /// Returns the path of a file.
    ///
    /// - Throws: `UsageError` for the URL of a coordination store.
    static func file(_ operand: String) throws(UsageError) -> String {
        guard operand.hasPrefix("redis"), operand.contains("://") else { return operand }
        throw UsageError(
            "a coordination store is not a file: back up Redis with its dump (RDB) or its log (AOF), and restore it while no node "
                + "runs; Docs/Guides/Cluster.md, 'Backup and restore', has the commands")
    }

    static func report(_ command: String, _ step: String, _ path: String, _ percent: Int, _ bytes: Int) {
        Console.error("trebuchet \(command): \(step) \(path): \(percent)% of \(bytes >> 20) MiB")
    }
}
