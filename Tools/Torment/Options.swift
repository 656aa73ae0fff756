import Foundation
import ToolOptions

/// What the command line says.
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

          --seconds N        how long hostile clients come (600)
          --seed N           their chance; a run prints its own
          --tls              also a server with TLS
          --only FAMILIES    only these, separated by commas
          --without FAMILIES all but these
          --replay SCHEDULE  a line that a finding printed, instead of chance
          --repeats N        how often a schedule is repeated to see a finding again (20)
          --shrink-seconds N how long the smallest schedule of a finding is looked for (240)
          --p99 MS           a finding when calls of honest clients took longer; else their times are only told
          --python FILE      an interpreter with 'websockets' for the foreign client; without it there is none
          --tool FILE        the executable 'trebuchet'
          --sanitized        it was built with a sanitizer: memory is told and not judged, and all may take longer

        families: \(Family.allCases.map(\.rawValue).joined(separator: ", "))
        exits with 0 when nothing was found, 1 after a finding, 2 after a wrong use
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
                    throw WrongUse("--replay: this is no schedule")
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
        if replay?.courses.contains(where: { [.tls, .bare].contains($0.line) }) == true { isTLS = true }
        guard !families.isEmpty else { throw WrongUse("no family is left") }
        guard FileManager.default.isExecutableFile(atPath: tool) else {
            throw WrongUse("--tool \(tool): there is no such executable")
        }
    }

    private static func families(_ option: String, _ list: String) throws(WrongUse) -> [Family] {
        var families: [Family] = []
        for name in list.split(separator: ",") {
            guard let family = Family(rawValue: String(name)) else {
                throw WrongUse("\(option): there is no family '\(name)'")
            }
            families.append(family)
        }
        return families
    }

    /// The lines of the servers that these families need.
    var lines: Set<Scenario.PortKind> {
        Set([.plain] + (isTLS ? [.tls, .bare] : []) + (families.contains(.output) ? [.full, .closed] : []))
    }

    /// What an answer may take beyond the limit of its call.
    var patience = Duration.seconds(12)
}
