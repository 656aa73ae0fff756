import Commands
import Foundation

extension BenchCommand {
    static let transfers = measure(
        "transfers", "amounts moved between accounts of an actor that is kept, beside the disk and SQLite alone",
        [
            OptionSpec("--accounts", "N", "accounts (100000); 100 are measured beside them"), connections,
            OptionSpec("--in-flight", "N", "transfers in flight on each (40)"),
            OptionSpec("--seconds", "S", "how long each figure is measured (5)"),
            OptionSpec(
                "--data", "FOLDER",
                "where the files go, and come away again (that of temporary files); it chooses the disk: one in memory, as "
                    + "tmpfs, measures nothing"),
            OptionSpec("--persisted", nil, "only what waits for the disk"),
            OptionSpec("--in-memory", nil, "only what does not"),
        ],
        discussion: """
            Each figure is of bank.transfer(from:to:amount:) between two accounts by chance, at a server with one reactor in a
            process of its own: persisted with 'serve --data' (each transaction on the disk before its transfers are answered),
            memory without; single is persisted, one transfer at a time. server_cpu_us and bytes_written are what a transfer costs
            the server's process, of its processor time and its disk. The total is checked after each, and after the server with
            data was killed and started again (ready_after_kill_ms later); a wrong one is an error.

            fdatasync_per_second is the disk's own limit: one block written and synced at a time.
            sqlite_transfers_per_second is SQLite in this process, without network or calls: WAL, synchronous=FULL, two reads and
            two writes a transfer, 1,000 transfers in a transaction.
            """
    ) { arguments in
        guard !(arguments.has("--persisted") && arguments.has("--in-memory")) else {
            throw UsageError("--persisted and --in-memory leave nothing: without both, both are measured")
        }
        let load = TransferLoad(
            accounts: try arguments.int("--accounts", in: 1...Bank.largestCount) ?? 100_000,
            connections: try arguments.int("--connections", in: 1...19_000) ?? 64,
            inFlight: try arguments.int("--in-flight", in: 1...10_000) ?? 40, seconds: try seconds(arguments),
            folder: arguments.string("--data") ?? FileManager.default.temporaryDirectory.path,
            measuresPersisted: !arguments.has("--in-memory"), measuresMemory: !arguments.has("--persisted"))
        return try await load.run()
    }
}
