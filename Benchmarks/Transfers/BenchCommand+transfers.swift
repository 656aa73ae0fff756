import Commands
import Foundation

extension BenchCommand {
    static let transfers = measure(
        "transfers", "transfers between accounts of a persisted actor, compared with disk and SQLite",
        [
            OptionSpec("--accounts", "N", "accounts (100000); also measured with 100"), connections,
            OptionSpec("--in-flight", "N", "transfers in flight per connection (40)"),
            OptionSpec("--seconds", "S", "duration of each measurement (5)"),
            OptionSpec(
                "--data", "FOLDER",
                "folder of the files (that of temporary files); it selects the disk: one in memory, such as "
                    + "tmpfs, gives no valid result"),
            OptionSpec("--persisted", nil, "only transfers that wait for the disk"),
            OptionSpec("--in-memory", nil, "only transfers in memory"),
        ],
        discussion: """
            Measures bank.transfer(from:to:amount:) between two random accounts, at a server with one reactor in a
            separate process: persisted with 'serve --data' (each transaction is on disk before its transfers are answered),
            memory without; single is persisted, one transfer at a time. server_cpu_us and bytes_written are processor time and
            disk writes of the server process per transfer. The total is checked after each run, and after the server with
            data was killed and restarted (ready_after_kill_ms later); a wrong total is an error.

            fdatasync_per_second is the limit of the disk: one block written and synced at a time.
            sqlite_transfers_per_second is SQLite in this process, without network or calls: WAL, synchronous=FULL, two reads and
            two writes a transfer, 1,000 transfers in a transaction.
            """
    ) { arguments in
        guard !(arguments.has("--persisted") && arguments.has("--in-memory")) else {
            throw UsageError("--persisted and --in-memory cannot be combined; without either, both are measured")
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
