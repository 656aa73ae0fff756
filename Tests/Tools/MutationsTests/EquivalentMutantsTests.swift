import Foundation
import TestSupport
import Testing

@testable import Mutations

@Suite("The list of equivalent mutants")
struct EquivalentMutantsTests {
    private static let root = packageRoot

    private static let source = """
        struct A {
            func b() {
                if c < d { e() }
                if c < d { e() }
                guard c else {
                    return
                }
            }
        }
        """
    private static let list = """
        # A comment.
        Sources/A/A.swift A.b
        - if c < d { e() }
        +     if c <= d { e() }
        Equal ones are
        the same.

        Sources/A/A.swift A.b
        -        guard c else {
        -            return
        -        }
        c is always true.

        """

    @Test("an entry is matched by its file, function and lines, wherever they are")
    func matching() throws {
        let list = try EquivalentMutants(Self.list)
        let mutants = MutantFinder.mutants(in: Self.source, file: "Sources/A/A.swift")
        let listed = mutants.filter { list.entry(for: $0, in: Self.source) != nil }
        #expect(listed.map(\.kind) == [.moved, .moved, .unguarded])
        #expect(list.entry(for: listed[0], in: Self.source)?.reason == "Equal ones are the same.")
        let elsewhere = MutantFinder.mutants(in: Self.source, file: "Sources/A/B.swift")
        #expect(elsewhere.allSatisfy { list.entry(for: $0, in: Self.source) == nil })
    }

    @Test(
        "an entry without a function, lines or a reason is rejected",
        arguments: ["Sources/A/A.swift\n-a\n+b\nc", "Sources/A/A.swift A.b\n+b\nc", "Sources/A/A.swift A.b\n-a\n+b"])
    func malformed(text: String) {
        #expect(throws: EquivalentMutants.MalformedEntry.self) { try EquivalentMutants(text) }
    }

    @Test("each entry of this repository is a possible mutant")
    func entries() throws {
        let text = try String(contentsOf: Self.root.appending(path: "Tools/equivalent-mutants.txt"), encoding: .utf8)
        let list = try EquivalentMutants(text)
        var sources: [String: (text: String, mutants: [Mutant])] = [:]
        for entry in list.entries {
            if sources[entry.file] == nil {
                let source = try String(contentsOf: Self.root.appending(path: entry.file), encoding: .utf8)
                sources[entry.file] = (source, MutantFinder.mutants(in: source, file: entry.file))
            }
            let (source, mutants) = try #require(sources[entry.file])
            let alike = mutants.filter { $0.function == entry.function }
            #expect(
                alike.contains { entry.describes($0, in: source) },
                "\(entry.file) \(entry.function): \(entry.before)")
        }
    }
}
