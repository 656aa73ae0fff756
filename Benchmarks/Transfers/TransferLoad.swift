import Commands
import Foundation
import Glibc
import Platform
import Synchronization
import Trebuchet

/// Measures transfers between random accounts, over many connections with many calls in flight. The baselines are the disk,
/// SQLite alone, and the same load without persistence.
struct TransferLoad {
    /// The number of accounts with which each other number is compared.
    static let fewAccounts = 100
    /// The number of accounts with which sequential transfers among all accounts are compared.
    static let fewestAccounts = 10

    let accounts: Int
    let connections: Int
    let inFlight: Int
    let seconds: Double
    /// The folder of the data, which is removed afterwards.
    let folder: String
    let measuresPersisted: Bool
    let measuresMemory: Bool

    func run() async throws -> BenchReport {
        var report = BenchReport()
        report.add("accounts", accounts)
        report.add("connections", connections)
        report.add("in_flight", inFlight)
        let own = "\(folder)/trebuchet-bench-\(UUID().uuidString)"
        if measuresPersisted {
            guard mkdir(own, 0o700) == 0 else { throw UsageError("\(own): \(String(cString: strerror(errno)))") }
        }
        defer { try? FileManager.default.removeItem(atPath: own) }
        if measuresPersisted {
            try await compareWithDisk(own, into: &report)
            try await persisted(own + "/bank.db", into: &report)
        }
        if measuresMemory {
            let server = try MeasuredServer(["--bench"])
            defer { server.stop() }
            for count in counts { try await measure("memory", server, count, into: &report) }
        }
        if measuresPersisted { report.add("fdatasync_per_second_at_the_end", try await syncRate(own)) }
        addRatios(to: &report)
        return report
    }

    private var counts: [Int] { accounts == Self.fewAccounts ? [accounts] : [Self.fewAccounts, accounts] }

    private func syncRate(_ folder: String) async throws -> Double {
        try await SyncRate.measure(folder + "/raw", seconds: min(seconds, 2))
    }

    private func compareWithDisk(_ folder: String, into report: inout BenchReport) async throws {
        Progress.printLine("fdatasync…")
        report.add("fdatasync_per_second", try await syncRate(folder))
        for count in counts {
            Progress.printLine("SQLite alone, \(count) accounts…")
            let sqlite = PlainSQLite(path: "\(folder)/plain-\(count).db", accounts: count, seconds: seconds)
            report.add("sqlite_transfers_per_second_\(count)", try await sqlite.run())
        }
    }

    private func persisted(_ file: String, into report: inout BenchReport) async throws {
        let server = try MeasuredServer(["--bench", "--data", file])
        defer { server.stop() }
        for count in counts { try await measure("persisted", server, count, into: &report) }
        for count in [Self.fewestAccounts, accounts] {
            try await measure("single", server, count, isAlone: true, into: &report)
        }
        // A kill must not lose data either.
        server.stop()
        let start = MonotonicClock.now
        let again = try MeasuredServer(["--bench", "--data", file])
        defer { again.stop() }
        try await Self.checkTotal("after a kill", at: again.url, accounts: accounts)
        report.add("ready_after_kill_ms_\(accounts)", MonotonicClock.seconds(since: start) * 1_000)
    }

    /// - Parameter isAlone: one transfer at a time, on one connection.
    private func measure(
        _ kind: String, _ server: MeasuredServer, _ count: Int, isAlone: Bool = false, into report: inout BenchReport
    ) async throws {
        Progress.printLine("\(kind), \(count) accounts…")
        try await Self.withBank(at: server.url) { try await $0.open(count) }
        let script = TransferScript(accounts: count, inFlight: isAlone ? 1 : inFlight, seed: UInt64(count))
        let load = RequestLoad(messages: script.messages, script: script)
        let process = try server.knownProcess()
        let (time, written) = (try process.processorTime(), try process.writtenBytes())
        let measurements = try await load.run(
            url: server.url, subprotocols: [Invocation.subprotocol], connections: isAlone ? 1 : connections,
            seconds: seconds)
        let transfers = Double(max(1, load.answers.load(ordering: .relaxed)))
        let cost = Double(try process.processorTime() - time) / 1_000 / transfers
        let bytes = Double(try process.writtenBytes() - written) / transfers
        guard script.failed == 0, measurements["errors"] == 0 else {
            throw UsageError("\(kind), \(count) accounts: calls failed, or connections ended")
        }
        try await Self.checkTotal("\(kind), \(count) accounts", at: server.url, accounts: count)
        report.add("\(kind)_transfers_per_second_\(count)", measurements["messages_per_second"] ?? 0)
        report.add("\(kind)_p50_us_\(count)", measurements["p50_us"] ?? 0)
        report.add("\(kind)_p99_us_\(count)", measurements["p99_us"] ?? 0)
        report.add("\(kind)_server_cpu_us_\(count)", cost)
        if kind != "memory" { report.add("\(kind)_bytes_written_\(count)", bytes) }
        // None is expected, while balances are much larger than the amounts.
        if script.refused > 0 { report.add("\(kind)_refused_\(count)", script.refused) }
    }

    /// Adds ratios of the results of this run, which can be compared between machines.
    private func addRatios(to report: inout BenchReport) {
        func rate(_ kind: String, _ count: Int) -> Double? { report["\(kind)_transfers_per_second_\(count)"] }
        var ratios: [(String, Double)] = []
        func compare(_ name: String, _ one: Double?, _ other: Double?, times factor: Double = 100) {
            if let one, let other, other > 0 { ratios.append((name, one * factor / other)) }
        }
        if accounts != Self.fewAccounts {
            for kind in ["persisted", "memory", "sqlite"] {
                compare(
                    "\(kind)_\(accounts)_percent_of_\(Self.fewAccounts)", rate(kind, accounts),
                    rate(kind, Self.fewAccounts))
            }
        }
        for count in counts {
            compare("persisted_percent_of_memory_\(count)", rate("persisted", count), rate("memory", count))
            compare("persisted_percent_of_sqlite_\(count)", rate("persisted", count), rate("sqlite", count))
            compare(
                "persisted_transfers_per_fdatasync_\(count)", rate("persisted", count),
                report["fdatasync_per_second"], times: 1)
        }
        for (name, value) in ratios { report.add(name, value) }
    }

    // MARK: The bank

    private static func checkTotal(_ what: String, at url: String, accounts: Int) async throws {
        let total = try await withBank(at: url) { try await $0.total() }
        guard total == accounts * Bank.startingBalance else {
            throw UsageError("\(what): the total is \(total), not \(accounts * Bank.startingBalance)")
        }
    }

    private static func withBank<Value>(at url: String, _ body: (Bank) async throws -> Value) async throws -> Value {
        let port = url.split(separator: ":").last.flatMap { Int($0) } ?? 0
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
        try await client.connect()
        do {
            let value = try await body(client.resolve(Bank.self, id: "bank"))
            await client.close()
            return value
        } catch {
            await client.close()
            throw error
        }
    }
}
