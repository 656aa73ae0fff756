@preconcurrency import Glibc
import PowerCuts
import ToolOptions
import TrebuchetStore

/// `scripts/stress power-cuts`: the state of a store after its disk loses power, by seeds.
@main
enum PowerCut {
    static func main() async {
        setvbuf(stdout, nil, _IOLBF, 0)
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.contains("--help") || arguments.contains("-h") { return print(Options.help) }
        do {
            exit(try await run(try Options(arguments)) ? 0 : 1)
        } catch let wrong as WrongUse {
            fputs("PowerCut: \(wrong)\n\n\(Options.help)\n", stderr)
            exit(2)
        } catch {
            print("PowerCut: \(error)")
            exit(1)
        }
    }

    /// True without findings.
    private static func run(_ options: Options) async throws -> Bool {
        var sum = Outcome()
        for seed in options.seeds {
            for durability in SQLiteStore.Durability.allCases {
                let outcome = try await Trial(
                    seed: UInt64(seed), durability, options.honesty, keepsFiles: true
                ).run()
                sum.add(outcome)
                print("seed \(seed), \(durability): cut at \(outcome.cut); \(outcome)")
                guard outcome.findings.isEmpty else {
                    for finding in outcome.findings { print("seed \(seed), \(durability), found: \(finding)") }
                    if let savedFolder = outcome.savedFolder { print("files of the disk: \(savedFolder)") }
                    let disk = options.honesty == .honest ? "" : " --disk \(options.honesty)"
                    print("again: scripts/stress power-cuts --seed \(seed)\(disk)")
                    return false
                }
            }
        }
        let cuts = options.seeds.count * SQLiteStore.Durability.allCases.count
        print(
            "all \(options.seeds.count) seeds: \(cuts) power cuts, \(sum.cutsWhileMoving) of them during page writes to the "
                + "database file, \(sum.batches.count) stores checked; \(sum)")
        print("nothing found")
        return true
    }
}

/// The options of the command line.
struct Options: Sendable {
    var seeds: ClosedRange<Int> = 1...500
    var honesty = Honesty.honest

    static let help = """
        usage: PowerCut [--seeds 1-500] [--seed N] [--disk honest]

          --seeds FROM-TO   seeds to run (1-500)
          --seed N          run only this seed
          --disk KIND       honest; lying: reports a sync without doing it; or unsynced: SQLite requests no sync
                            (honest). With the last two a finding is expected

        Exits with 0 without a finding, 1 after a finding, 2 after wrong usage.
        """

    init(_ arguments: [String]) throws(WrongUse) {
        var rest = ToolOptions(arguments)
        while let option = rest.next() {
            switch option {
            case "--seeds":
                let value = try rest.value()
                let ends = value.split(separator: "-").compactMap { Int($0) }
                guard ends.count == 2, ends[0] >= 0, ends[0] <= ends[1] else {
                    throw WrongUse("--seeds must be two numbers as 1-500, not '\(value)'")
                }
                seeds = ends[0]...ends[1]
            case "--seed":
                let seed = try rest.number(0...1_000_000_000)
                seeds = seed...seed
            case "--disk":
                let value = try rest.value()
                guard let kind = Honesty(rawValue: value) else {
                    throw WrongUse("--disk must be honest, lying or unsynced, not '\(value)'")
                }
                honesty = kind
            default: throw rest.unknown
            }
        }
    }
}
