@preconcurrency import Glibc
import ToolOptions

import struct Foundation.Data
import class Foundation.FileHandle

/// `scripts/stress consistency`: compares what clients observed, and the responses they received, with the final state of the server, while
/// servers and clients are killed and connections fail.
@main
enum Consistency {
    static func main() async {
        setvbuf(stdout, nil, _IOLBF, 0)
        signal(SIGPIPE, SIG_IGN)
        // Backtraces of killed processes would take minutes.
        setenv("SWIFT_BACKTRACE", "enable=no", 0)
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.contains("--help") || arguments.contains("-h") { return print(Options.help) }
        do {
            switch arguments.first {
            case "serve":
                guard arguments.count == 3, let port = Int(arguments[2]) else { exit(2) }
                try await GameServer.run(file: arguments[1], port: port)
            case "node":
                guard let node = GameNode(Array(arguments.dropFirst())) else { exit(2) }
                try await node.run()
            case "play":
                guard let pool = ClientPool(Array(arguments.dropFirst())) else { exit(2) }
                try await pool.run()
            case "count":
                guard let pool = CounterClientPool(Array(arguments.dropFirst())) else { exit(2) }
                try await pool.run()
            case "play-web":
                guard let pool = BrowserClientPool(Array(arguments.dropFirst())) else { exit(2) }
                try await pool.run()
            case "write":
                guard let pool = WriterPool(Array(arguments.dropFirst())) else { exit(2) }
                try await pool.run()
            case "office": try await ServicesServer.run(Array(arguments.dropFirst()))
            case "bank":
                guard arguments.count == 3, let port = Int(arguments[2]) else { exit(2) }
                try await BankServer.run(file: arguments[1], port: port)
            case "visit": try await ServicesTestClient.run(Array(arguments.dropFirst()))
            default:
                let options = try Options(arguments)
                let isGood =
                    if options.bank {
                        try await judgeBank(options)
                    } else if options.services {
                        try await judgeServices(options)
                    } else {
                        try await judgeGame(options)
                    }
                exit(isGood ? 0 : 1)
            }
        } catch let wrong as WrongUse {
            FileHandle.standardError.write(Data("Consistency: \(wrong)\n\n\(Options.help)\n".utf8))
            exit(2)
        } catch {
            print("Consistency: \(error)")
            exit(1)
        }
    }

    private static func judgeGame(_ options: Options) async throws -> Bool {
        let kind =
            (options.web ? "--web " : "") + (options.nodes > 0 ? "--nodes \(options.nodes) " : "")
            + (options.namespaces
                ? "--namespaces --faults \(options.faults.map(\.rawValue).joined(separator: ",")) " : "")
            + (options.server.map { "--server \($0) " } ?? "") + "--seed"
        return try await judge(
            options, again: { "\(kind) \($0) --clients \(options.clients) --calls \(options.calls)" }
        ) {
            await (try Judge(seed: $0, options)).run()
        }
    }

    private static func judgeServices(_ options: Options) async throws -> Bool {
        let nodes = options.nodes > 0 ? "--nodes \(options.nodes) " : ""
        return try await judge(options, again: { "--services \(nodes)--seed \($0) --rounds \(options.rounds)" }) {
            await (try ServicesJudge(seed: $0, options)).run()
        }
    }

    private static func judgeBank(_ options: Options) async throws -> Bool {
        try await judge(options, again: { "--bank --seed \($0) --accounts \(options.accounts)" }) {
            await (try BankJudge(seed: $0, options)).run()
        }
    }

    /// Runs seeds. Returns true if none of them has a finding.
    ///
    /// - Parameter again: the options that repeat one of them.
    private static func judge<Found: SeedOutcome>(
        _ options: Options, again: (_ seed: Int) -> String, _ run: (_ seed: UInt64) async throws -> Found
    ) async throws -> Bool {
        var sum = Found()
        for seed in options.seeds {
            let begin = ContinuousClock.now
            let outcome = try await run(UInt64(seed))
            let seconds = (ContinuousClock.now - begin) / .seconds(1)
            print("seed \(seed): \(outcome), \((seconds * 10).rounded() / 10) s")
            sum.add(outcome)
            guard outcome.findings.isEmpty else {
                for finding in outcome.findings { print("seed \(seed), found: \(finding)") }
                print("again: scripts/stress consistency \(again(seed))")
                return false
            }
        }
        print("all \(options.seeds.count) seeds: \(sum)")
        print("nothing found")
        return true
    }
}

/// The outcome of one or more seeds.
protocol SeedOutcome: CustomStringConvertible {
    var findings: [String] { get }
    init()
    mutating func add(_ other: Self)
}
