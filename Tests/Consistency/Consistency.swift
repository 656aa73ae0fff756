@preconcurrency import Glibc
import ToolOptions

import struct Foundation.Data
import class Foundation.FileHandle

/// `scripts/consistency`: what clients see and were told, against what the server has in the end, while servers and clients are
/// killed and lines fail.
@main
enum Consistency {
    static func main() async {
        setvbuf(stdout, nil, _IOLBF, 0)
        signal(SIGPIPE, SIG_IGN)
        // Who is killed is not looked at for minutes.
        setenv("SWIFT_BACKTRACE", "enable=no", 0)
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.contains("--help") || arguments.contains("-h") { return print(Options.help) }
        do {
            switch arguments.first {
            case "serve":
                guard arguments.count == 3, let port = Int(arguments[2]) else { exit(2) }
                try await GameServer.run(file: arguments[1], port: port)
            case "play":
                guard let crew = Crew(Array(arguments.dropFirst())) else { exit(2) }
                try await crew.run()
            case "play-web":
                guard let crew = WebCrew(Array(arguments.dropFirst())) else { exit(2) }
                try await crew.run()
            case "office":
                guard arguments.count == 3, let port = Int(arguments[2]) else { exit(2) }
                try await OfficeServer.run(file: arguments[1], port: port)
            case "bank":
                guard arguments.count == 3, let port = Int(arguments[2]) else { exit(2) }
                try await BankServer.run(file: arguments[1], port: port)
            case "visit": try await Guest.run(Array(arguments.dropFirst()))
            default:
                let options = try Options(arguments)
                let isGood =
                    if options.bank {
                        try await judgeBank(options)
                    } else if options.services {
                        try await judgeServices(options)
                    } else {
                        try await judge(options)
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

    /// Whether nothing was found.
    private static func judge(_ options: Options) async throws -> Bool {
        var sum = Outcome()
        for seed in options.seeds {
            let begin = ContinuousClock.now
            let judge = try Judge(seed: UInt64(seed), options)
            let outcome = await judge.run()
            let seconds = (ContinuousClock.now - begin) / .seconds(1)
            print("seed \(seed): \(outcome), \(Int((seconds * 10).rounded()) / 10) s")
            sum.add(outcome)
            guard outcome.findings.isEmpty else {
                for finding in outcome.findings { print("seed \(seed), found: \(finding)") }
                let kind = options.web ? "--web --seed" : "--seed"
                let size = "--clients \(options.clients) --calls \(options.calls)"
                print("again: scripts/consistency \(kind) \(seed) \(size)")
                return false
            }
        }
        print("all \(options.seeds.count) seeds: \(sum)")
        print("nothing found")
        return true
    }

    private static func judgeServices(_ options: Options) async throws -> Bool {
        var sum = ServicesOutcome()
        for seed in options.seeds {
            let begin = ContinuousClock.now
            let outcome = try await ServicesJudge(seed: UInt64(seed), options).run()
            let seconds = (ContinuousClock.now - begin) / .seconds(1)
            print("seed \(seed): \(outcome), \((seconds * 10).rounded() / 10) s")
            sum.add(outcome)
            guard outcome.findings.isEmpty else {
                for finding in outcome.findings { print("seed \(seed), found: \(finding)") }
                print("again: scripts/consistency --services --seed \(seed) --rounds \(options.rounds)")
                return false
            }
        }
        print("all \(options.seeds.count) seeds: \(sum)")
        print("nothing found")
        return true
    }

    private static func judgeBank(_ options: Options) async throws -> Bool {
        var sum = BankOutcome()
        for seed in options.seeds {
            let begin = ContinuousClock.now
            let outcome = try await BankJudge(seed: UInt64(seed), options).run()
            let seconds = (ContinuousClock.now - begin) / .seconds(1)
            print("seed \(seed): \(outcome), \((seconds * 10).rounded() / 10) s")
            sum.add(outcome)
            guard outcome.findings.isEmpty else {
                for finding in outcome.findings { print("seed \(seed), found: \(finding)") }
                print("again: scripts/consistency --bank --seed \(seed) --accounts \(options.accounts)")
                return false
            }
        }
        print("all \(options.seeds.count) seeds: \(sum)")
        print("nothing found")
        return true
    }
}
