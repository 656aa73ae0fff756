import Foundation
import Mutations

/// A copy of the package with mutants compiled in, below `.build/mutations`.
struct MutationBuild {
    let root: String
    /// The folders of targets by name, relative to `root`.
    let sourceFolders: [String: String]
    let testFolders: [String: String]
    let folder: String
    private var package: String { folder + "/package" }
    var state: String { folder + "/state" }
    private static let copied = [
        "Plugins", "Sources", "Benchmarks", "Tests", "Tools", "Examples", "Docs", "scripts", "Package.swift",
        "README.md",
        "LICENSE", ".swift-format",
    ]

    init(root: String) throws {
        self.root = root
        (sourceFolders, testFolders) = (try Self.folders("Sources", root), try Self.folders("Tests", root))
        folder = root + "/.build/mutations"
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
    }

    var binary: String { folder + "/build/debug/TrebuchetPackageTests.xctest" }
    var currentFolder: String { package }

    /// Builds the tests with all mutants that compile.
    ///
    /// - Parameter mutants: the mutants by number.
    /// - Returns: the numbers of those that do not compile.
    func build(_ mutants: [Int: Mutant], targets: [String], progress: (String) -> Void) throws -> Set<Int> {
        var mutants = mutants
        var dropped: Set<Int> = []
        for round in 1...40 {
            let schemata = try write(mutants)
            progress("building with \(mutants.count) mutants (round \(round))")
            let started = ContinuousClock.now
            let build = try Command(
                [
                    "swift", "build", "--build-tests", "--package-path", package, "--scratch-path", folder + "/build",
                    "-Xswiftc", "-continue-building-after-errors",
                ], in: package,
                environment: ["TREBUCHET_STRICT": "0", "TREBUCHET_TESTS": targets.joined(separator: ",")])
            try build.output.write(toFile: folder + "/build.log", atomically: true, encoding: .utf8)
            let seconds = Int((ContinuousClock.now - started).components.seconds)
            if build.status == 0 {
                progress("built in \(seconds) s")
                return dropped
            }
            let suspects = Self.suspects(in: build.output, schemata, package)
            guard !suspects.isEmpty else {
                throw Failure(
                    description: "the copy does not build (\(folder)/build.log):\n\(build.output.suffix(3_000))")
            }
            progress("\(suspects.count) of them do not compile (\(seconds) s)")
            for number in suspects { mutants[number] = nil }
            dropped.formUnion(suspects)
        }
        throw Failure(description: "the copy did not build in 40 rounds (\(folder)/build.log)")
    }

    private static func suspects(in output: String, _ schemata: [String: Schemata], _ package: String) -> Set<Int> {
        var suspects: Set<Int> = []
        for line in output.split(separator: "\n") {
            guard let match = line.firstMatch(of: #/^(/.*\.swift):(\d+):\d+: error: /#), let number = Int(match.2),
                let found = schemata[String(match.1.dropFirst(package.count + 1))]
            else { continue }
            suspects.formUnion(found.suspects(line: number))
        }
        return suspects
    }

    /// Updates the copy from the package, with the mutants; skips unchanged files.
    private func write(_ mutants: [Int: Mutant]) throws -> [String: Schemata] {
        let files = FileManager.default
        var wanted: Set<String> = []
        var schemata: [String: Schemata] = [:]
        let byFile = Dictionary(grouping: mutants, by: \.value.file)
            .mapValues { Dictionary(uniqueKeysWithValues: $0.map { ($0.key, $0.value) }) }
        for path in Self.paths(below: root) {
            wanted.insert(path)
            guard let original = files.contents(atPath: root + "/" + path) else { continue }
            if let own = byFile[path] {
                let rewritten = Schemata(source: String(decoding: original, as: UTF8.self), mutants: own)
                schemata[path] = rewritten
                try writeFile(Data(rewritten.text.utf8), path)
            } else {
                try writeFile(original, path)
            }
        }
        // A file is in "Sources/GROUP/MODULE/".
        for module in Set(byFile.keys.map { $0.split(separator: "/").prefix(3).joined(separator: "/") }) {
            let path = module + "/MutantSwitch.swift"
            wanted.insert(path)
            try writeFile(Data(Schemata.support.utf8), path)
        }
        for path in Self.paths(below: package) where !wanted.contains(path) {
            try files.removeItem(atPath: package + "/" + path)
        }
        return schemata
    }

    private func writeFile(_ data: Data, _ path: String) throws {
        let files = FileManager.default
        let full = package + "/" + path
        if files.contents(atPath: full) == data { return }
        try files.createDirectory(
            atPath: (full as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        _ = files.createFile(
            atPath: full, contents: data,
            attributes: [
                .posixPermissions: (try? files.attributesOfItem(atPath: root + "/" + path)[.posixPermissions]) ?? 0o644
            ])
    }

    private static func paths(below folder: String) -> [String] {
        copied.flatMap { top -> [String] in
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: folder + "/" + top, isDirectory: &isFolder) else { return [] }
            guard isFolder.boolValue else { return [top] }
            let below = FileManager.default.enumerator(atPath: folder + "/" + top)?.compactMap { $0 as? String } ?? []
            return below.map { top + "/" + $0 }.filter { path in
                var isFolder: ObjCBool = false
                let exists = FileManager.default.fileExists(atPath: folder + "/" + path, isDirectory: &isFolder)
                return exists && !isFolder.boolValue && !path.contains("__pycache__")
            }
        }.sorted()
    }

    /// Returns the folders two levels below: those of targets, in the folders of groups.
    private static func folders(_ top: String, _ root: String) throws -> [String: String] {
        var folders: [String: String] = [:]
        for group in try FileManager.default.contentsOfDirectory(atPath: "\(root)/\(top)") {
            for target in try FileManager.default.contentsOfDirectory(atPath: "\(root)/\(top)/\(group)") {
                folders[target] = "\(top)/\(group)/\(target)"
            }
        }
        return folders
    }

    /// A hash of the content of folders of the copy.
    func fingerprint(_ folders: [String]) -> String {
        let paths = Self.paths(below: package).filter { path in folders.contains { path.hasPrefix($0 + "/") } }
        var hash = Fingerprint()
        for path in paths {
            hash.combine(Data(path.utf8))
            hash.combine(FileManager.default.contents(atPath: package + "/" + path) ?? Data())
        }
        return hash.text
    }
}

/// FNV-1a over bytes.
struct Fingerprint {
    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func combine(_ data: Data) {
        data.withUnsafeBytes { bytes in
            for byte in bytes { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 }
        }
    }

    var text: String { String(state, radix: 16) }
}
