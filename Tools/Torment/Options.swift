import Foundation
import ToolOptions

/// The options of the command line.
struct Options: Sendable {
    var seconds = 600
    var seed = UInt64.random(in: 1...999_999)
    var isTLS = false
    var isSanitized = false
    var families = Family.allCases
    var replay: Schedule?
    var repeats = 20
    /// Milliseconds.
    var p99: Int?
    var shrinkSeconds = 240
    var tool = "trebuchet"
    var python: String?

    static let help = """
        usage: Torment --tool FILE [--seconds N] [--seed N] [--tls] [--only FAMILIES] [--without FAMILIES]
                       [--replay SCHEDULE] [--repeats N] [--shrink-seconds N] [--p99 MS] [--python FILE] [--sanitized]

          --seconds N        duration of the attacks (600)
          --seed N           seed of the hostile clients; a run prints its seed
          --tls              also a server with TLS
          --only FAMILIES    only these, separated by commas
          --without FAMILIES all but these
          --replay SCHEDULE  the schedule that a finding printed, instead of random ones
          --repeats N        repetitions of a schedule to reproduce a finding (20)
          --shrink-seconds N maximum time to search for the smallest schedule of a finding (240)
          --p99 MS           report slower calls of honest clients as a finding, instead of only their times
          --python FILE      an interpreter with 'websockets' for the foreign client; none without it
          --tool FILE        the executable 'trebuchet'
          --sanitized        built with a sanitizer: memory is reported without a check, and time limits are longer

        families: \(Family.allCases.map(\.rawValue).joined(separator: ", "))
        Exits with 0 without a finding, 1 after a finding, 2 after wrong usage.
        """

    init(_ arguments: [String]) throws(WrongUse) {
        var rest = ToolOptions(arguments)
        var only: [Family]?
        var without: [Family] = []
        while let option = rest.next() {
            switch option {
            case "--seconds": seconds = try rest.number(1...1_000_000)
            case "--seed": seed = UInt64(try rest.number(0...Int.max))
            case "--tls": isTLS = true
            case "--only": only = try Self.families(option, try rest.value())
            case "--without": without = try Self.families(option, try rest.value())
            case "--replay":
                let line = try rest.value()
                guard let schedule = Schedule(reading: line) else {
                    throw WrongUse("--replay: invalid schedule")
                }
                replay = schedule
            case "--repeats": repeats = try rest.number(1...10_000)
            case "--shrink-seconds": shrinkSeconds = try rest.number(0...100_000)
            case "--p99": p99 = try rest.number(1...100_000)
            case "--python": python = try rest.value()
            case "--tool": tool = try rest.value()
            case "--sanitized":
                isSanitized = true
                patience = .seconds(25)
            default: throw rest.unknown
            }
        }
        families = (only ?? Family.allCases).filter { !without.contains($0) && (isTLS || $0 != .tls) }
        if replay?.scenarios.contains(where: { [.tls, .bare].contains($0.line) }) == true { isTLS = true }
        guard !families.isEmpty else { throw WrongUse("--only and --without leave no family") }
        guard FileManager.default.isExecutableFile(atPath: tool) else {
            throw WrongUse("--tool \(tool): not an executable")
        }
    }

    private static func families(_ option: String, _ list: String) throws(WrongUse) -> [Family] {
        var families: [Family] = []
        for name in list.split(separator: ",") {
            guard let family = Family(rawValue: String(name)) else {
                throw WrongUse("\(option): unknown family '\(name)'")
            }
            families.append(family)
        }
        return families
    }

    /// The ports of the servers that these families need.
    var lines: Set<Scenario.PortKind> {
        Set([.plain] + (isTLS ? [.tls, .bare] : []) + (families.contains(.output) ? [.full, .closed] : []))
    }

    /// The time that a response may take beyond its call's limit.
    var patience = Duration.seconds(12)
}
