//! Tables as people bring them, and those that nothing can be learned from.

use std::fs;

use tempfile::TempDir;

use super::*;

fn raw(text: &str) -> RawTable {
    raw::csv(Box::new(text.as_bytes()), None, "t.csv".to_owned()).unwrap()
}

fn learn(text: &str, options: &TableOptions) -> Result<(TableSchema, Vec<String>), DataError> {
    let target = options.target.as_deref();
    let table = raw::csv(Box::new(text.as_bytes()), target, "t.csv".to_owned())?;
    TableSchema::learn(&table, options)
}

fn error(text: &str, options: &TableOptions) -> String {
    learn(text, options).unwrap_err().to_string()
}

fn missing(missing: Missing) -> TableOptions {
    TableOptions {
        missing,
        ..TableOptions::default()
    }
}

#[test]
fn headers_separators_and_cells() {
    for text in [
        "a,b,kind\n1,2.5,x\n3,,y\n",
        "a;b;kind\n1;2.5;x\n3;NA;y\n",
        "a\tb\tkind\r\n1\t2.5\tx\r\n3\t?\ty\r\n",
    ] {
        let table = raw(text);
        assert!(table.named);
        assert_eq!(table.names(), "a, b, kind");
        assert_eq!(table.columns[0].cells, Cells::Numbers(vec![1.0, 3.0]));
        let Cells::Numbers(cells) = &table.columns[1].cells else {
            panic!("numbers")
        };
        assert!(cells[0] == 2.5 && cells[1].is_nan());
        let text = |word: &str| Some(word.to_owned());
        assert_eq!(
            table.columns[2].cells,
            Cells::Text(vec![text("x"), text("y")])
        );
    }
    // Without names.
    let table = raw("1,2,x\n3,4,y\n5,6,x\n");
    assert!(!table.named && table.rows() == 3);
    assert_eq!(table.columns[1].cells, Cells::Numbers(vec![2.0, 4.0, 6.0]));
    assert_eq!(table.columns[2].name, "column 2");
    // A word above numbers is a name, and equal names are told apart.
    let table = raw("a,1,a\n0,5,x\n");
    assert!(table.named);
    assert_eq!(table.names(), "a, 1, a (2)");
    assert_eq!(table.find("A"), Some(0));
    assert_eq!(table.find("2"), Some(2));
    // A column that is text in one row only keeps all its cells.
    let table = raw("a,b\n1.50,2\nx,3\n");
    let Cells::Text(cells) = &table.columns[0].cells else {
        panic!("text")
    };
    assert_eq!(cells[0].as_deref(), Some("1.50"));
}

#[test]
fn tasks_are_recognised() {
    let task = |text: &str, choice| {
        let options = TableOptions {
            task: choice,
            ..TableOptions::default()
        };
        learn(text, &options).unwrap()
    };
    let (schema, notes) = task("a,b\n1,x\n2,y\n3,x\n4,y\n", TaskChoice::Auto);
    assert_eq!(schema.target, "b");
    assert_eq!(
        schema.task,
        TableTask::Classification {
            classes: vec!["x".into(), "y".into()]
        }
    );
    assert!(
        notes[0].contains("2 classes (x, y)") && notes[0].contains("--task"),
        "{notes:?}"
    );
    let numbers = "a,b\n1,3\n2,5\n3,3\n4,5\n";
    let (schema, _) = task(numbers, TaskChoice::Auto);
    assert_eq!(
        schema.task,
        TableTask::Classification {
            classes: vec!["3".into(), "5".into()]
        }
    );
    let (schema, _) = task(numbers, TaskChoice::Regression);
    assert_eq!(
        schema.task,
        TableTask::Regression {
            mean: 4.0,
            deviation: 1.0
        }
    );
    let (schema, _) = task(numbers, TaskChoice::Counts);
    assert_eq!(schema.task, TableTask::Counts { mean: 4.0 });
    let (schema, _) = task("a,b\n1,0.5\n2,1\n", TaskChoice::Auto);
    assert!(matches!(schema.task, TableTask::Regression { .. }));
    // A column with a usual name is the target wherever it is, and one that is named before it.
    let (schema, _) = task("y,a\n0,1\n1,2\n0,3\n1,4\n", TaskChoice::Auto);
    assert_eq!(schema.target, "y");
    assert_eq!(
        schema.task,
        TableTask::Classification {
            classes: vec!["0".into(), "1".into()]
        }
    );
    let options = TableOptions {
        target: Some("A".into()),
        ..TableOptions::default()
    };
    assert_eq!(learn("y,a\n0,1.5\n1,2\n", &options).unwrap().0.target, "a");
}

#[test]
fn columns_are_standardised_coded_or_left_out() {
    let text = "id,x,same,colour,y\n1,2,7,red,0\n2,4,7,blue,1\n3,6,7,red,0\n4,8,7,green,1\n";
    let (schema, notes) = learn(text, &TableOptions::default()).unwrap();
    let notes = notes.join("\n");
    assert!(notes.contains("\"id\" numbers the rows"), "{notes}");
    assert!(notes.contains("left out: \"same\""), "{notes}");
    assert!(notes.contains("\"colour\": text, 3 levels"), "{notes}");
    assert_eq!(schema.inputs(), 4);
    let encoded = schema.encode(&raw(text)).unwrap();
    assert_eq!(encoded.inputs.shape(), [4, 4]);
    let root = 5.0_f32.sqrt();
    // blue, green, red
    let expected = [-3.0 / root, 0., 0., 1., -1.0 / root, 1., 0., 0.];
    let found = &encoded.inputs.values()[..8];
    assert!(
        (found.iter().zip(expected)).all(|(found, expected)| (found - expected).abs() < 1e-6),
        "{found:?}"
    );
    assert_eq!(encoded.inputs.labels().values, Some(vec![0, 1, 0, 1]));
    let units: Vec<(&str, f64)> = schema.units().collect();
    assert!(units.len() == 1 && units[0].0 == "x" && (units[0].1 - 5.0_f64.sqrt()).abs() < 1e-7);
    // Other order, more columns, no target, an unknown word.
    let other = raw("colour,more,x\nred,1,5\nblack,2,5\n");
    let encoded = schema.encode(&other).unwrap();
    assert_eq!(encoded.inputs.values(), [0., 0., 0., 1., 0., 0., 0., 0.]);
    assert!(encoded.notes[0].contains("1 rows have words that training did not have"));
    assert_eq!(encoded.inputs.labels().values, None);
    // It survives its file.
    let json = serde_json::to_string(&schema).unwrap();
    assert!(json.contains("2.23606798"), "{json}");
    assert_eq!(serde_json::from_str::<TableSchema>(&json).unwrap(), schema);
    // Columns may be left out.
    let options = TableOptions {
        drop: vec!["colour".into(), "id".into()],
        ..TableOptions::default()
    };
    assert_eq!(learn(text, &options).unwrap().0.inputs(), 1);
}

#[test]
fn missing_cells_are_refused_filled_or_left_out() {
    let text = "x,w,y\n1,a,0\n2,,1\n,b,0\n9,a,1\n";
    let text_error = error(text, &TableOptions::default());
    assert!(
        text_error.contains("column \"x\"") && text_error.contains("row 3"),
        "{text_error}"
    );
    assert!(text_error.contains("--missing mean, median or drop"));
    for (policy, fill) in [(Missing::Mean, 4.0), (Missing::Median, 2.0)] {
        let (schema, _) = learn(text, &missing(policy)).unwrap();
        let ColumnKind::Number { fill: found, .. } = schema.columns[0].kind else {
            panic!("number")
        };
        assert_eq!(found, Some(fill));
        let encoded = schema.encode(&raw(text)).unwrap();
        assert_eq!(encoded.inputs.values()[3..6][1..], [0.0, 0.0], "no level");
    }
    let (table, note) = TableSchema::usable_rows(Missing::Drop, &raw(text));
    assert_eq!(table.rows(), 2);
    assert!(note.unwrap().contains("2 of 4 rows"));
    let (schema, _) = TableSchema::learn(&table, &missing(Missing::Drop))
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(
        schema
            .encode(&raw(text))
            .unwrap_err()
            .to_string()
            .contains("nothing in row 3")
    );
}

#[test]
fn what_cannot_be_learned_from_is_named() {
    let auto = TableOptions::default();
    let mut dates = "when,y\n".to_owned();
    let mut words = "name,y\n".to_owned();
    for row in 0..60 {
        dates.push_str(&format!("2024-01-{:02} 10:00,{}\n", row % 28 + 1, row % 2));
        words.push_str(&format!("person {row},{}\n", row % 2));
    }
    let text = error(&dates, &auto);
    assert!(
        text.contains("\"when\"") && text.contains("dates") && text.contains("--drop"),
        "{text}"
    );
    let text = error(&words, &auto);
    assert!(
        text.contains("\"name\"") && text.contains("free text"),
        "{text}"
    );
    let text = error("a,b,y\n1,2,0\n2,x,1\n3,4,0\n4,5,1\n", &auto);
    assert!(
        text.contains("\"b\"") && text.contains("\"x\" in row 2"),
        "{text}"
    );
    assert!(error("a,y\n1,3\n2,3\n", &auto).contains("the same in all rows"));
    let classes = TableOptions {
        task: TaskChoice::Classification,
        ..TableOptions::default()
    };
    assert!(error("a,y\n1,3\n2,4\n3,5\n4,6\n5,7\n", &classes).contains("--task regression"));
    let text = error("a,y\n1,p\n2,q\n3,r\n4,s\n5,t\n", &auto);
    assert!(
        text.contains("put classes together") && !text.contains("--task regression"),
        "{text}"
    );
    assert!(error("a,y\n7,0\n7,1\n7,0\n7,1\n", &auto).contains("nothing to learn from"));
    assert!(error("a,y\ninf,0\n1,1\n1,0\n1,1\n", &auto).contains("inf in row 1"));
    assert!(error("a,y\n1,0\n2,\n", &auto).contains("target \"y\""));
    let named = |target: &str| TableOptions {
        target: Some(target.into()),
        ..TableOptions::default()
    };
    let text = error("a,y\n1,0\n2,1\n", &named("z"));
    assert!(
        text.contains("a column \"z\"") && text.contains("the columns a, y"),
        "{text}"
    );
    let regression = TableOptions {
        task: TaskChoice::Regression,
        ..TableOptions::default()
    };
    assert!(error("a,y\n1,p\n2,q\n", &regression).contains("--task classification"));
    let counts = TableOptions {
        task: TaskChoice::Counts,
        ..TableOptions::default()
    };
    assert!(error("a,y\n1,1\n2,-3\n", &counts).contains("-3 in row 2"));
    let drop = TableOptions {
        drop: vec!["q".into()],
        ..TableOptions::default()
    };
    assert!(error("a,y\n1,0\n2,1\n", &drop).contains("--drop"));
    // Later tables.
    let (schema, _) = learn("a,b,y\n1,2,u\n2,1,v\n3,5,u\n4,4,v\n", &auto).unwrap();
    let error = |text: &str| schema.encode(&raw(text)).unwrap_err().to_string();
    let text = error("a,c\n1,2\n");
    assert!(
        text.contains("among them b") && text.contains("the columns a, c"),
        "{text}"
    );
    assert!(error("a,b,y\n1,2,w\n").contains("one of the training classes u, v"));
    assert!(error("a,b,y\n1,,u\n").contains("nothing in row 1"));
    assert!(error("a,b,y\n1,z,u\n").contains("\"z\" in row 1"));
}

#[test]
fn arrays_are_tables() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.npy");
    let values = [1.0_f32, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0];
    fs::write(&path, crate::npy::f32_bytes(&[4, 2], &values)).unwrap();
    let options = ReadOptions::default();
    let table = RawTable::read(&path, &options, None).unwrap();
    assert_eq!(table.names(), "column 0, column 1");
    let (schema, _) = TableSchema::learn(
        &table,
        &TableOptions {
            task: TaskChoice::Regression,
            ..TableOptions::default()
        },
    )
    .unwrap();
    assert_eq!(schema.target, "column 1");
    // With labels beside it, which may be numbers of any kind.
    let labels = folder.path().join("y.npy");
    fs::write(&labels, crate::npy::f32_bytes(&[4], &[0.5, 1.5, 2.5, 3.0])).unwrap();
    let table = RawTable::read(&path, &options, None).unwrap();
    let (schema, _) = TableSchema::learn(&table, &TableOptions::default()).unwrap();
    assert_eq!((schema.target.as_str(), schema.inputs()), ("label", 2));
    assert_eq!(
        schema.encode(&table).unwrap().targets,
        Some(vec![0.5, 1.5, 2.5, 3.0])
    );
    let images = folder.path().join("images.npy");
    fs::write(&images, crate::npy::u8_bytes(&[2, 2, 2], &[0; 8])).unwrap();
    assert!(
        RawTable::read_if_table(&images, &options, None)
            .unwrap()
            .is_none()
    );
    assert!(
        RawTable::read(&images, &options, None)
            .unwrap_err()
            .to_string()
            .contains("[n, d]")
    );
}
