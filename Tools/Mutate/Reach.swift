import Foundation
import Mutations

/// The test suites that reach each mutant, and their durations.
struct Reach: Codable {
    struct Suite: Codable {
        let name: String
        let milliseconds: Int
        let mutants: [Int]
        /// The failure of the suite without a mutant, which makes it unusable.
        let failure: String?
    }

    private struct Target: Codable {
        let fingerprint: String
        let suites: [Suite]
    }

    private var sources = ""
    private var targets: [String: Target] = [:]

    func suites(of target: String) -> [Suite] { targets[target]?.suites ?? [] }

    /// Runs each suite alone, without a mutant; reuses earlier results if neither sources nor tests have changed.
    static func record(
        _ names: [String], in build: MutationBuild, highest: Int, jobs: Int,
        progress: @escaping @Sendable (String) -> Void
    ) async throws -> Reach {
        let path = build.state + "/reach.json"
        let sources = build.fingerprint(["Sources"])
        var reach = Reach()
        if let data = FileManager.default.contents(atPath: path),
            let old = try? JSONDecoder().decode(Reach.self, from: data), old.sources == sources
        {
            reach = old
        }
        reach.sources = sources
        let list = try Command(
            [build.binary, "--testing-library", "swift-testing", "--list-tests"], in: build.currentFolder)
        for target in names {
            let fingerprint = build.fingerprint([build.testFolders[target] ?? "Tests/" + target])
            // A failure may have been caused by a busy machine.
            let known = reach.targets[target].flatMap { $0.fingerprint == fingerprint ? $0.suites : nil } ?? []
            let good = known.filter { $0.failure == nil }
            let suites = Set(
                list.output.split(separator: "\n").filter { $0.hasPrefix(target + ".") }
                    .map { String($0.prefix { $0 != "/" }) }
            ).subtracting(good.map(\.name)).sorted()
            if suites.isEmpty { continue }
            let queue = Queue(suites)
            let started = ContinuousClock.now
            let found = try await withThrowingTaskGroup(of: [Suite].self) { group in
                for _ in 0..<jobs {
                    group.addTask {
                        var found: [Suite] = []
                        while let name = queue.next() {
                            found.append(try await suite(name, in: build, highest: highest))
                        }
                        return found
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            // A suite that failed beside another one is repeated alone.
            var all = good
            for one in found {
                all.append(one.failure == nil ? one : try await suite(one.name, in: build, highest: highest))
            }
            reach.targets[target] = Target(fingerprint: fingerprint, suites: all.sorted { $0.name < $1.name })
            progress("\(target): \(suites.count) suites in \((ContinuousClock.now - started).components.seconds) s")
            for one in all {
                if let failure = one.failure { progress("skipped, it fails without a mutant: \(one.name): \(failure)") }
            }
            try JSONEncoder().encode(reach).write(to: URL(filePath: path))
        }
        return reach
    }

    private static func suite(_ name: String, in build: MutationBuild, highest: Int) async throws -> Suite {
        let map = build.state + "/reached-\(name)"
        _ = FileManager.default.createFile(atPath: map, contents: Data(count: highest + 1))
        defer { try? FileManager.default.removeItem(atPath: map) }
        let run = try await TestRun(
            binary: build.binary, filter: filter([name]), mutant: nil, reached: map, limit: .seconds(180))
        let bytes = FileManager.default.contents(atPath: map) ?? Data()
        return Suite(
            name: name, milliseconds: Int(run.duration / .milliseconds(1)),
            mutants: bytes.indices.filter { bytes[$0] != 0 },
            failure: run.end == .passed ? nil : String(describing: run.end))
    }

    static func filter(_ suites: [String]) -> String {
        "^(" + suites.map { NSRegularExpression.escapedPattern(for: $0) }.joined(separator: "|") + ")(/|$)"
    }
}
