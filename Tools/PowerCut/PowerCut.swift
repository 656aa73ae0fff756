@preconcurrency import Glibc
import PowerCuts
import ToolOptions
import TrebuchetStore

/// `scripts/power-cuts`: what is left of a store whose disk loses its power, by seeds.
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

    /// Whether nothing was found.
    private static func run(_ options: Options) async throws -> Bool {
        var sum = Outcome()
        for seed in options.seeds {
            for durability in SQLiteStore.Durability.allCases {
                let outcome = try await Trial(
                    seed: UInt64(seed), durability, options.honesty, keepsFiles: true
                ).run()
                sum.add(outcome)
                print("seed \(seed), \(durability): cut when \(outcome.cut); \(outcome)")
                guard outcome.findings.isEmpty else {
                    for finding in outcome.findings { print("seed \(seed), \(durability), found: \(finding)") }
                    if let kept = outcome.kept { print("what the disk had: \(kept)") }
                    let disk = options.honesty == .honest ? "" : " --disk \(options.honesty)"
                    print("again: scripts/power-cuts --seed \(seed)\(disk)")
                    return false
                }
            }
        }
        let cuts = options.seeds.count * SQLiteStore.Durability.allCases.count
        print(
            "all \(options.seeds.count) seeds: \(cuts) power cuts, \(sum.cutsWhileMoving) of them while pages went into the "
                + "file, \(sum.batches.count) stores looked at; \(sum)")
        print("nothing found")
        return true
    }
}

/// What the command line says.
struct Options: Sendable {
    var seeds: ClosedRange<Int> = 1...500
    var honesty = Honesty.honest

    static let help = """
        usage: PowerCut [--seeds 1-500] [--seed N] [--disk honest]

          --seeds FROM-TO   which seeds, one after the other (1-500)
          --seed N          this one alone
          --disk KIND       honest; or lying: it says that it has synced, and has not; or unsynced: SQLite does not ask it to
                            (honest). With the others something must be found

        exits with 0 when nothing was found, 1 after a finding, 2 after a wrong use
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
