/// The modules that must compile without epoll and Glibc: the client and the state family (Docs/Reference/Platforms.md).
enum PortableRules {
    /// The modules that Package.swift includes on other platforms than Linux.
    static func modules(inManifest text: String) -> Set<String> {
        let list = text.firstMatch(of: /portable: Set<String> = \[([^\]]*)\]/)?.output.1 ?? ""
        return Set(list.matches(of: /"([^"]+)"/).map { String($0.output.1) })
    }

    /// Portable modules that need one that is not; among system modules only epoll has a replacement.
    static func findings(in manifest: Manifest, portable: Set<String>) -> [Finding] {
        manifest.targets.filter { portable.contains($0.name) }.flatMap { target in
            target.dependencies.filter { !portable.contains($0) && $0 != "CEpoll" }.map {
                Finding(path: "Package.swift", message: "\(target.name) is portable and needs \($0), which is not")
            }
        }
    }

    /// Imports of Linux-only modules without a replacement on other platforms.
    static func findings(in file: SourceText, portable: Set<String>) -> [Finding] {
        guard file.path.hasPrefix("Sources/"), let module = file.module, portable.contains(module) else { return [] }
        var conditions: [Bool] = []
        return zip(1..., file.code).compactMap { number, line in
            let words = line.split(whereSeparator: \.isWhitespace)
            switch words.first {
            case "#if": conditions.append(line.contains("Darwin") || line.contains("Glibc"))
            case "#endif": conditions.removeLast()
            default: break
            }
            guard words.contains("import"), let name = words.last, name == "Glibc" || name == "CEpoll",
                !conditions.contains(true)
            else { return nil }
            let message = "\(module) is portable: '\(name)' needs '#if canImport(Darwin)' and its place in '#else'"
            return Finding(path: file.path, line: number, message: message)
        }
    }
}
