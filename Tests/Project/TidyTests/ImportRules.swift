/// Permitted imports between modules.
enum ImportRules {
    struct Import: Equatable {
        let module: String
        let line: Int
    }

    /// The imports of a file, whatever attributes and access levels they carry.
    static func imports(of file: SourceText) -> [Import] {
        let statement =
            #/
            ^\s* (?: @\w+ (?: \( [^)]* \) )? \s+ )* (?: (?: public | package | internal | fileprivate | private ) \s+ )?
            import \s+ (?: (?: struct | class | enum | protocol | func | var | let | typealias | actor ) \s+ )? (\w+)
            /#
        return zip(1..., file.code).compactMap { number, line in
            guard line.contains("import"), let match = line.firstMatch(of: statement) else { return nil }
            return Import(module: String(match.output.1), line: number)
        }
    }

    /// Imports of modules of the package that are in a higher layer or not listed by the target.
    static func findings(in file: SourceText, manifest: Manifest, layers: [String: Int]) -> [Finding] {
        guard let module = file.module, let target = manifest.target(module) else { return [] }
        return imports(of: file).compactMap { statement in
            let imported = statement.module
            guard imported != module, manifest.target(imported) != nil || layers[imported] != nil else { return nil }
            func finding(_ message: String) -> Finding {
                Finding(path: file.path, line: statement.line, message: message)
            }
            guard target.dependencies.contains(imported) else {
                return finding("imports \(imported), which the target \(module) does not list in Package.swift")
            }
            if !file.isTestCode, let own = layers[module], let other = layers[imported], other >= own {
                return finding(
                    "\(module) (layer \(own)) imports \(imported) (layer \(other)); only lower layers may be")
            }
            return nil
        }
    }

    /// Targets whose listed dependencies break the layers, and targets without a layer.
    static func findings(in manifest: Manifest, layers: [String: Int]) -> [Finding] {
        manifest.targets.filter { !$0.name.hasSuffix("Tests") }.flatMap { target in
            guard let own = layers[target.name] else {
                return [
                    Finding(
                        path: "Package.swift", message: "\(target.name) has no layer; give it one in LayerRules.swift")
                ]
            }
            return target.dependencies.compactMap { name in
                guard let other = layers[name], other >= own else { return nil }
                let message =
                    "\(target.name) (layer \(own)) depends on \(name) (layer \(other)); only lower layers may be"
                return Finding(path: "Package.swift", message: message)
            }
        }
    }
}
