import Foundation
import Mutations
import ToolOptions

/// What the command line says.
struct Options: Sendable {
    var modules: [String]?
    var count = 40
    var seed = UInt64.random(in: 1...999_999)
    /// The commit whose differences from the work tree count.
    var changedSince: String?
    var isListing = false
    var jobs = 2
    var seconds: Int?
    var resumes = false
    var root = FileManager.default.currentDirectoryPath

    static let help = """
        usage: scripts/mutate [--module M]… [--count N] [--seed S] [--changed[=BASE]] [--list]
                              [--jobs N] [--seconds N] [--resume] [--help]

        Makes one slip at a time in a copy of the package (a comparison turned or moved by one, a guard
        dropped, a call left out, a branch swapped, a constant changed), runs the tests of its module
        that come by, and lists the slips that no test notices.

          --module M       only this module; may be given again (\(TestTargets.usual.joined(separator: ", ")))
          --count N        so many slips in each module (40)
          --seed S         which ones; a run prints its own
          --changed[=BASE] only slips on lines that differ from BASE, as far as it is an ancestor: by
                           default from where the branch left main, or from HEAD~1 on main itself; in all
                           modules that have tests
          --list           prints the slips with their diffs, and neither builds nor runs anything
          --jobs N         so many slips at once (2); one that only a time limit noticed is tried alone again
          --seconds N      begins no further slip after this time; --resume takes up where it ended
          --resume         takes the outcomes of earlier runs of the same slips; those that had survived are
                           tried again if tests or sources have changed since

        The copy and its build stay in .build/mutations. Slips that change nothing are listed, with the
        reason, in Tools/equivalent-mutants.txt, and not counted.
        Exits with 0 when all was noticed, 1 when a slip survived, 2 after a wrong use, 3 when it could not run.
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
