/// Permitted uses between the folders of a module: the declarations of a folder are for the folders above it.
enum FolderRules {
    struct Use: Equatable {
        let path: String
        let line: Int
        let name: String
        let from: String
        let to: String
    }

    /// The folder of a file inside its module; "." for the module's root.
    static func folder(of file: SourceText) -> String {
        let parts = file.path.split(separator: "/").dropFirst(2).dropLast()
        return parts.isEmpty ? "." : parts.joined(separator: "/")
    }

    /// Types and type-like functions at the top level of a file, except private ones.
    static func declarations(of file: SourceText) -> Set<String> { declared(in: file, nested: false) }

    /// Nested types and generic parameters: within their scope they shadow top-level names.
    static func nestedDeclarations(of file: SourceText) -> Set<String> { declared(in: file, nested: true) }

    private static let keywords: Set<Substring> = [
        "struct", "class", "enum", "protocol", "actor", "typealias", "associatedtype",
    ]

    private static func declared(in file: SourceText, nested: Bool) -> Set<String> {
        var names: Set<String> = []
        for line in file.code where line.first.map({ $0.isWhitespace == nested }) ?? false {
            let words = line.split { !($0.isLetter || $0.isNumber || $0 == "_") }
            guard let keyword = words.firstIndex(where: keywords.contains), keyword + 1 < words.count,
                !words[..<keyword].contains("import")
            else { continue }
            let isOwn = words[..<keyword].contains { $0 == "private" || $0 == "fileprivate" }
            if nested || !isOwn { names.insert(String(words[keyword + 1])) }
        }
        return names.filter { $0.first { $0 != "_" }?.isUppercase == true }
    }

    /// The uses of other folders by the files of a module, found by names of types that only one folder declares.
    static func uses(in files: [SourceText]) -> [Use] {
        var homes: [String: Set<String>] = [:]
        var nested: [String: Set<String>] = [:]
        for file in files {
            let folder = folder(of: file)
            for name in declarations(of: file) { homes[name, default: []].insert(folder) }
            nested[folder, default: []].formUnion(nestedDeclarations(of: file))
        }
        let home = homes.compactMapValues { $0.count == 1 ? $0.first : nil }
        return files.flatMap { file -> [Use] in
            let own = folder(of: file)
            var wanted = file.identifiers.filter { home[$0] != nil && home[$0] != own }
            wanted.subtract(nested[own] ?? [])
            guard !wanted.isEmpty else { return [] }
            var found: [Use] = []
            for (number, line) in zip(1..., file.code) {
                for name in names(in: line) where wanted.remove(name) != nil {
                    found.append(Use(path: file.path, line: number, name: name, from: own, to: home[name]!))
                }
            }
            return found
        }
    }

    /// The identifiers of a line that may name a top-level type: no members, which follow a dot.
    private static func names(in line: String) -> [String] {
        var names: [String] = []
        var word: [UInt8] = []
        var before = UInt8(ascii: " ")
        func end() {
            // Internal names start with an underscore.
            if let first = word.first(where: { $0 != UInt8(ascii: "_") }),
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first),
                before != UInt8(ascii: ".")
            {
                names.append(String(decoding: word, as: UTF8.self))
            }
        }
        for byte in line.utf8 {
            if byte == UInt8(ascii: "_") || byte >= 0x80 || isAlphanumeric(byte) {
                word.append(byte)
            } else {
                end()
                word = []
                before = byte
            }
        }
        end()
        return names
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }

    /// Uses of the same or a higher layer, folders without a layer, and layers without a folder.
    ///
    /// - Parameter layers: for each module its layers, the lowest first; folders of one layer may not use each other.
    static func findings(in files: [SourceText], layers: [String: [[String]]]) -> [Finding] {
        let modules = Dictionary(grouping: files.filter { $0.path.hasPrefix("Sources/") }) { $0.module ?? "" }
        var findings: [Finding] = []
        for (module, files) in modules.sorted(by: { $0.key < $1.key }) {
            let folders = Set(files.map(folder))
            var layerOf: [String: Int] = [:]
            for (layer, names) in (layers[module] ?? []).enumerated() { for name in names { layerOf[name] = layer } }
            if layers[module] == nil, folders.count < 2 { continue }
            for folder in folders.symmetricDifference(layerOf.keys).sorted() {
                let message =
                    folders.contains(folder)
                    ? "the folder has no layer; give it one in FolderLayout.swift"
                    : "FolderLayout.swift names it, and there is no such folder"
                findings.append(Finding(path: "Sources/\(module)/\(folder)", message: message))
            }
            for use in uses(in: files) {
                guard let from = layerOf[use.from], let to = layerOf[use.to], to >= from else { continue }
                let message = "\(use.from) uses \(use.name) of \(use.to), which is no lower layer of \(module)"
                findings.append(Finding(path: use.path, line: use.line, message: message))
            }
        }
        return findings
    }
}
