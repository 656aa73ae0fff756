import Foundation
import Mutations
import ToolOptions

/// The options of the command line.
struct Options: Sendable {
    var modules: [String]?
    var count = 40
    var seed = UInt64.random(in: 1...999_999)
    /// The commit to compare the work tree with.
    var changedSince: String?
    var isListing = false
    var jobs = 2
    var seconds: Int?
    var resumes = false
    var root = FileManager.default.currentDirectoryPath

    static let help = """
        usage: scripts/stress mutate [--module M]… [--count N] [--seed S] [--changed[=BASE]] [--list]
                              [--jobs N] [--seconds N] [--resume] [--help]

        Applies one mutant at a time to a copy of the package (a comparison turned or moved by one, a guard
        dropped, a call left out, a branch swapped, a constant changed), runs the tests of its module
        that reach it, and lists the mutants that no test detects.

          --module M       only this module; may be repeated (\(TestTargets.defaults.joined(separator: ", ")))
          --count N        mutants for each module (40)
          --seed S         seed of the sample; a run prints its seed
          --changed[=BASE] only mutants on lines that differ from the merge base with BASE: by
                           default the branch point from main, or HEAD~1 on main itself; in all
                           modules that have tests
          --list           print the mutants with their diffs, without building or running anything
          --jobs N         concurrent mutants (2); one detected only by a time limit is repeated alone
          --seconds N      start no further mutant after this time; continue with --resume
          --resume         reuse the outcomes of earlier runs of the same mutants; survivors are
                           tested again if tests or sources have changed since

        The copy and its build stay in .build/mutations. Equivalent mutants are listed, with the
        reason, in Tools/equivalent-mutants.txt, and not counted.
        Exits with 0 when all mutants were detected, 1 when one survived, 2 after wrong usage, 3 on failure.
        """

    init(_ arguments: [String]) throws(WrongUse) {
        var rest = ToolOptions(arguments)
        while let option = rest.next() {
            switch option {
            case "--module": modules = (modules ?? []) + [try rest.value()]
            case "--count": count = try rest.number(1...100_000)
            case "--seed": seed = UInt64(try rest.number(0...Int.max))
            case "--changed": changedSince = ""
            case _ where option.hasPrefix("--changed="):
                changedSince = String(option.dropFirst("--changed=".count))
                if changedSince == "" { throw WrongUse("--changed= needs a commit") }
            case "--list": isListing = true
            case "--jobs": jobs = try rest.number(1...64)
            case "--seconds": seconds = try rest.number(1...1_000_000)
            case "--resume": resumes = true
            case "--root": root = try rest.value()
            default: throw rest.unknown
            }
        }
    }
}
