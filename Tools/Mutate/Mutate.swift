import Dispatch
import Foundation
import Mutations
import Synchronization
import ToolOptions

/// Applies one mutant at a time and reports those that the tests do not detect; scripts/stress mutate runs it.
@main
enum Mutate {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.contains("--help") || arguments.contains("-h") {
            Mutate.printLine(Options.help)
            return
        }
        do {
            let options = try Options(arguments)
            let signals = endingRunsOnSignals()
            let found = try await Session(options).run()
            for source in signals { source.cancel() }
            exit(found ? 1 : 0)
        } catch let wrong as WrongUse {
            printStatus("\(wrong); see --help")
            exit(2)
        } catch {
            printStatus("\(error)")
            exit(3)
        }
    }

    static func printLine(_ text: String) {
        FileHandle.standardOutput.write(Data((text + "\n").utf8))
    }

    static func printStatus(_ text: String) {
        FileHandle.standardError.write(Data("mutate: \(text)\n".utf8))
    }

    private static func endingRunsOnSignals() -> [any DispatchSourceSignal] {
        [SIGINT, SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler {
                TestRun.killProcesses(with: TestRun.mark)
                exit(130)
            }
            source.resume()
            return source
        }
    }
}

/// One run, from the sources to the report.
struct Session {
    private let options: Options
    private let build: MutationBuild
    /// The folder of each module below the root.
    private let equivalents: EquivalentMutants
    private let changes: ChangedLines?
    private let modules: [String]

    private struct Candidate {
        let module: String
        let mutant: Mutant
        let source: String

        /// An identity that survives most changes outside of the mutant's function.
        var key: String {
            let bytes = Array(source.utf8)[mutant.change]
            let from = String(decoding: bytes, as: UTF8.self)
            return
                "\(mutant.file)|\(mutant.function)|\(mutant.kind.rawValue)|\(from)|\(mutant.replacement)|\(mutant.occurrence)"
        }
    }

    private struct Record: Codable {
        let key: String
        let outcome: Outcome
        let fingerprint: String
    }

    init(_ options: Options) throws {
        self.options = options
        let list = options.root + "/Tools/equivalent-mutants.txt"
        equivalents = try EquivalentMutants((try? String(contentsOfFile: list, encoding: .utf8)) ?? "")
        changes = try options.changedSince.map { try ChangedLines(since: $0, root: options.root) }
        build = try MutationBuild(root: options.root)
        let (folders, tests) = (build.sourceFolders, build.testFolders)
        for module in options.modules ?? [] where folders[module] == nil {
            throw WrongUse("Sources has no module '\(module)'")
        }
        for module in options.modules ?? [] {
            for target in TestTargets.targets(of: module) where tests[target] == nil {
                throw WrongUse("module '\(module)' has no tests: the target \(target) is missing")
            }
        }
        let changed = changes.map { changes in
            Set(changes.files.compactMap { $0.split(separator: "/").dropFirst(2).first.map(String.init) }).sorted()
        }
        modules =
            options.modules
            ?? changed?.filter { module in TestTargets.targets(of: module).allSatisfy { tests[$0] != nil } }
            ?? TestTargets.defaults
    }

    /// - Returns: true if a mutant survived.
    func run() async throws -> Bool {
        let started = ContinuousClock.now
        Mutate.printLine("seed \(options.seed), \(modules.joined(separator: ", "))")
        let known = uncompilable
        let drawn = try modules.flatMap { try draw($0) }
        if options.isListing {
            for module in modules {
                for candidate in drawn.filter({ $0.module == module }).prefix(options.count) { show(candidate) }
            }
            return false
        }
        guard !drawn.isEmpty else { throw Failure(description: "no mutants found") }
        let targets = Array(Set(drawn.map(\.module).flatMap(TestTargets.targets))).sorted()
        // Numbered before the ones that do not compile are dropped, so that an equal sample gives an equal build.
        let numbered = Dictionary(uniqueKeysWithValues: drawn.enumerated().map { ($0.offset, $0.element) })
            .filter { !known.contains($0.value.key) }
        let dropped = try build.build(numbered.mapValues(\.mutant), targets: targets) { Mutate.printLine($0) }
        try rememberUncompilable(known.union(dropped.compactMap { numbered[$0]?.key }))
        // One of each module, then the next of each: an aborted run has covered all modules.
        let chosen =
            modules.flatMap { module in
                numbered.filter { $0.value.module == module && !dropped.contains($0.key) }
                    .sorted { $0.key < $1.key }.prefix(options.count).enumerated()
                    .map { (turn: $0.offset, number: $0.element.key, candidate: $0.element.value) }
            }
            .sorted { ($0.turn, $0.number) < ($1.turn, $1.number) }
            .map { (number: $0.number, candidate: $0.candidate) }
        guard FileManager.default.changeCurrentDirectoryPath(build.currentFolder) else {
            throw Failure(description: "cannot change the directory to \(build.currentFolder)")
        }
        let reach = try await Reach.record(
            targets, in: build, highest: drawn.count, jobs: options.jobs
        ) { Mutate.printLine($0) }
        let outcomes = try await tryAll(chosen, reach, until: options.seconds.map { started + .seconds($0) })
        let report = Report(
            lines: chosen.map { number, candidate in
                Report.Line(
                    module: candidate.module, mutant: candidate.mutant,
                    change: candidate.mutant.difference(in: candidate.source), outcome: outcomes[number],
                    reason: equivalents.entry(for: candidate.mutant, in: candidate.source)?.reason)
            })
        for survivor in report.survivors {
            Mutate.printLine("\n\(Report.heading(survivor)) (\(survivor.outcome?.detail ?? ""))")
            Mutate.printLine(survivor.change.unified(file: survivor.mutant.file))
        }
        Mutate.printLine("\n\(report.table)")
        let open = report.lines.count { $0.outcome == nil && $0.reason == nil }
        Mutate.printLine(
            "\nseed \(options.seed), \((ContinuousClock.now - started).components.seconds) s, \(dropped.count) did not compile"
                + (open > 0 ? "; \(open) not tested yet, continue with --resume" : ""))
        return !report.survivors.isEmpty
    }

    private func show(_ candidate: Candidate) {
        let change = candidate.mutant.difference(in: candidate.source)
        let mutant = candidate.mutant
        Mutate.printLine("\n\(mutant.file):\(mutant.line) \(mutant.function): \(mutant.kind.rawValue)")
        Mutate.printLine(change.unified(file: mutant.file))
    }

    // MARK: - Selecting mutants

    /// Draws more than requested, since some will not compile.
    private func draw(_ module: String) throws -> [Candidate] {
        guard let folder = build.sourceFolders[module] else { return [] }
        let paths =
            FileManager.default.enumerator(atPath: options.root + "/" + folder)?.compactMap { $0 as? String } ?? []
        var sources: [String: String] = [:]
        var mutants: [Mutant] = []
        for path in paths.sorted() where path.hasSuffix(".swift") && !path.contains(".docc/") {
            let file = "\(folder)/\(path)"
            if let changes, !changes.files.contains(file) { continue }
            let source = try String(contentsOfFile: options.root + "/" + file, encoding: .utf8)
            sources[file] = source
            mutants += MutantFinder.mutants(in: source, file: file).filter { mutant in
                guard let changes else { return true }
                let change = mutant.difference(in: source)
                return changes.contains(file, change.line...(change.line + max(0, change.before.count - 1)))
            }
        }
        let drawn = Sample.draw(options.count + options.count / 4 + 1, from: mutants, seed: options.seed)
        Mutate.printLine("\(module): \(mutants.count) possible mutants")
        return drawn.map { Candidate(module: module, mutant: $0, source: sources[$0.file] ?? "") }
    }

    private var uncompilablePath: String { build.state + "/uncompilable" }

    private var uncompilable: Set<String> {
        Set(
            (try? String(contentsOfFile: uncompilablePath, encoding: .utf8))?.split(separator: "\u{0}").map(String.init)
                ?? [])
    }

    private func rememberUncompilable(_ keys: Set<String>) throws {
        try keys.sorted().joined(separator: "\u{0}").write(toFile: uncompilablePath, atomically: true, encoding: .utf8)
    }

    // MARK: - Running tests

    private func tryAll(
        _ chosen: [(number: Int, candidate: Candidate)], _ reach: Reach, until deadline: ContinuousClock.Instant?
    ) async throws -> [Int: Outcome] {
        let fingerprint = build.fingerprint(["Sources", "Tests", "Tools"])
        let path = build.state + "/outcomes.jsonl"
        var earlier: [String: Outcome] = [:]
        if options.resumes {
            for line in (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n") ?? [] {
                guard let record = try? JSONDecoder().decode(Record.self, from: Data(line.utf8)) else { continue }
                let isGone = record.outcome.kind == .survived || record.outcome.kind == .unreached
                earlier[record.key] = isGone && record.fingerprint != fingerprint ? nil : record.outcome
            }
        } else {
            try? FileManager.default.removeItem(atPath: path)
        }
        if !FileManager.default.fileExists(atPath: path) {
            _ = FileManager.default.createFile(atPath: path, contents: nil)
        }
        guard let file = FileHandle(forWritingAtPath: path) else { throw Failure(description: "cannot write \(path)") }
        file.seekToEndOfFile()
        var outcomes: [Int: Outcome] = [:]
        var trials: [(trial: Trial, candidate: Candidate)] = []
        for (number, candidate) in chosen {
            if equivalents.entry(for: candidate.mutant, in: candidate.source) != nil { continue }
            if let known = earlier[candidate.key] {
                outcomes[number] = known
                continue
            }
            let targets = TestTargets.targets(of: candidate.module)
            trials.append(
                (Trial(binary: build.binary, number: number, targets: targets, reach: reach), candidate))
        }
        let progress = Progress(total: trials.count)
        let done = Mutex(outcomes)
        let keep: @Sendable (Trial, Candidate, Outcome) -> Void = { trial, candidate, outcome in
            done.withLock { known in
                known[trial.number] = outcome
                let record = Record(key: candidate.key, outcome: outcome, fingerprint: fingerprint)
                if let line = try? JSONEncoder().encode(record) { file.write(line + Data("\n".utf8)) }
            }
            progress.printStatus(
                "\(outcome.kind.rawValue): \(candidate.mutant.file):\(candidate.mutant.line) \(outcome.detail)")
        }
        let queue = Queue(trials.map { ($0.trial, $0.candidate) })
        let isLate: @Sendable () -> Bool = { deadline.map { ContinuousClock.now > $0 } ?? false }
        let again = try await withThrowingTaskGroup(of: [(Trial, Candidate, Int)].self) { group in
            for _ in 0..<options.jobs {
                group.addTask {
                    var again: [(Trial, Candidate, Int)] = []
                    while !isLate(), let (trial, candidate) = queue.next() {
                        switch try await trial.run(isAlone: false) {
                        case .outcome(let outcome): keep(trial, candidate, outcome)
                        case .again(let part): again.append((trial, candidate, part))
                        }
                    }
                    return again
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        for (trial, candidate, part) in again where !isLate() {
            if case .outcome(let outcome) = try await trial.run(from: part, isAlone: true) {
                keep(trial, candidate, outcome)
            }
        }
        return done.withLock { $0 }
    }
}

/// Prints the progress of the run.
private final class Progress: Sendable {
    private let total: Int
    private let started = ContinuousClock.now
    private let done = Mutex(0)

    init(total: Int) { self.total = total }

    func printStatus(_ text: String) {
        let count = done.withLock { done in
            done += 1
            return done
        }
        let spent = Double((ContinuousClock.now - started).components.seconds)
        let left = Int(spent / Double(count) * Double(total - count))
        Mutate.printLine("\(count) of \(total), \(left / 60) min \(left % 60) s left: \(text)")
    }
}
