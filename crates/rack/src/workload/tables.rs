//! Flow-size distributions given as a table, and the published ones that come with the project.
//!
//! A table is a list of (size, share of flows at or below it). Published tools read the same table
//! in three ways, with means up to ten times apart, so a [`Reading`] is part of every use. Sources
//! and traps: `tables/README.md`.

use kernel::{Bytes, Stream};
use serde::{Deserialize, Serialize};

/// How a table of (size, cdf) becomes sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// A draw in `(cdf[i-1], cdf[i]]` gives `size[i-1]`.
    LowerStep,
    /// Straight lines between the points.
    Linear,
    /// A draw in `(cdf[i-1], cdf[i]]` gives `size[i]`.
    UpperStep,
}

impl Reading {
    /// The name in scenario files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LowerStep => "lower_step",
            Self::Linear => "linear",
            Self::UpperStep => "upper_step",
        }
    }
}

/// A distribution of sizes as a table, with its reading.
#[derive(Clone, PartialEq, Debug)]
pub struct SizeTable {
    /// Size in bytes and the share of flows at or below it; neither decreases; the last share is 1.
    points: Vec<(u64, f64)>,
    reading: Reading,
}

impl SizeTable {
    /// A table of (size in bytes, share of flows at or below it).
    ///
    /// # Errors
    /// In words, if the table is not a distribution of flow sizes.
    pub fn new(points: Vec<(u64, f64)>, reading: Reading) -> Result<Self, String> {
        let Some(&(largest, last)) = points.last() else {
            return Err("a size table needs at least one point".into());
        };
        for (at, point) in points.iter().enumerate() {
            if !(0.0..=1.0).contains(&point.1) {
                return Err(format!("the share {} of point {at} is not between 0 and 1", point.1));
            }
        }
        for (at, pair) in points.windows(2).enumerate() {
            if pair[1].0 < pair[0].0 || pair[1].1 < pair[0].1 {
                return Err(format!(
                    "sizes and shares must not decrease, but point {} does",
                    at + 1
                ));
            }
        }
        if last != 1.0 {
            return Err(format!("the last share must be exactly 1, not {last}"));
        }
        if largest == 0 {
            return Err("the largest size is 0 bytes".into());
        }
        Ok(Self { points, reading })
    }

    /// How the table is read.
    #[must_use]
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// The size at which the share `p` in (0, 1] is reached, in bytes, not rounded.
    #[must_use]
    pub fn quantile(&self, p: f64) -> f64 {
        let at = self.points.partition_point(|&(_, share)| share < p);
        let (upper, reached) = self.points[at.min(self.points.len() - 1)];
        let Some(&(lower, before)) = at.checked_sub(1).and_then(|below| self.points.get(below))
        else {
            return upper as f64;
        };
        match self.reading {
            Reading::LowerStep => lower as f64,
            Reading::UpperStep => upper as f64,
            Reading::Linear => {
                lower as f64 + (upper - lower) as f64 * ((p - before) / (reached - before))
            }
        }
    }

    /// Draws a size: to the nearest byte, at least one.
    pub fn draw(&self, stream: &mut Stream) -> Bytes {
        Bytes::new((libm::round(self.quantile(stream.open_unit())) as u64).max(1))
    }

    /// The exact mean in bytes, before rounding to whole bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let first = self.points[0].0 as f64 * self.points[0].1;
        self.points.windows(2).fold(first, |sum, pair| {
            let (lower, upper) = (pair[0].0 as f64, pair[1].0 as f64);
            let size = match self.reading {
                Reading::LowerStep => lower,
                Reading::Linear => (lower + upper) / 2.0,
                Reading::UpperStep => upper,
            };
            sum + size * (pair[1].1 - pair[0].1)
        })
    }

    /// The largest size in the table.
    #[must_use]
    pub fn max(&self) -> Bytes {
        Bytes::new(self.points.last().expect("a table has points").0)
    }
}

/// A published distribution.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The name in scenario files.
    pub name: &'static str,
    /// Names that people use for it; one may stand for several tables.
    pub aliases: &'static [&'static str],
    /// Where it was published.
    pub source: &'static str,
    /// The reading that reproduces its published mean, or that its tool uses.
    pub reading: Reading,
    /// `size_bytes,cdf` in lines.
    text: &'static str,
}

impl Published {
    /// The table in this reading.
    #[must_use]
    pub fn table(&self, reading: Reading) -> SizeTable {
        let point = |line: &str| {
            let (size, share) = line.split_once(',')?;
            Some((size.parse().ok()?, share.parse().ok()?))
        };
        let points: Option<Vec<_>> = self.text.lines().skip(1).map(point).collect();
        let points = points.expect("tests read every published table");
        SizeTable::new(points, reading).expect("tests check every published table")
    }

    /// The published distributions that `name` may mean: by its own name or an alias, whatever the
    /// case, spaces, dashes and underscores.
    #[must_use]
    pub fn named(name: &str) -> Vec<&'static Published> {
        let plain = |text: &str| -> String {
            text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
        };
        let wanted = plain(name);
        if let Some(exact) = PUBLISHED.iter().find(|table| plain(table.name) == wanted) {
            return vec![exact];
        }
        let also = |table: &&Published| table.aliases.iter().any(|alias| plain(alias) == wanted);
        PUBLISHED.iter().filter(also).collect()
    }
}

/// What a list of the published distributions shows of each.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CatalogueRow {
    /// The name in scenario files.
    pub name: &'static str,
    /// Names that people use for it.
    pub aliases: &'static [&'static str],
    /// Where it was published.
    pub source: &'static str,
    /// The default reading; the figures below are in it.
    pub reading: Reading,
    /// Mean in bytes.
    pub mean_bytes: f64,
    /// Median in bytes.
    pub p50_bytes: f64,
    /// 99th percentile in bytes.
    pub p99_bytes: f64,
    /// Largest size in bytes.
    pub max_bytes: u64,
}

/// Every published distribution with its figures in the default reading.
#[must_use]
pub fn catalogue() -> Vec<CatalogueRow> {
    let row = |published: &Published| {
        let table = published.table(published.reading);
        CatalogueRow {
            name: published.name,
            aliases: published.aliases,
            source: published.source,
            reading: published.reading,
            mean_bytes: table.mean(),
            p50_bytes: table.quantile(0.5),
            p99_bytes: table.quantile(0.99),
            max_bytes: table.max().get(),
        }
    };
    PUBLISHED.iter().map(row).collect()
}

/// The published distributions, in the order of `tables/index.csv`.
pub const PUBLISHED: &[Published] = &[
    Published {
        name: "homa_w1_fb_memcached",
        aliases: &["W1", "ETC"],
        source: "Atikoglu et al., SIGMETRICS 2012 (Facebook ETC memcached), as W1 of Homa, SIGCOMM 2018",
        reading: Reading::UpperStep,
        text: include_str!("tables/homa_w1_fb_memcached.csv"),
    },
    Published {
        name: "homa_w2_google_search_rpc",
        aliases: &["W2"],
        source: "Google search RPCs, as W2 of Homa, SIGCOMM 2018",
        reading: Reading::UpperStep,
        text: include_str!("tables/homa_w2_google_search_rpc.csv"),
    },
    Published {
        name: "homa_w3_google_all_rpc",
        aliases: &["W3"],
        source: "All RPCs of a Google datacentre, as W3 of Homa, SIGCOMM 2018",
        reading: Reading::UpperStep,
        text: include_str!("tables/homa_w3_google_all_rpc.csv"),
    },
    Published {
        name: "homa_w4_fb_hadoop",
        aliases: &["W4", "Hadoop"],
        source: "Roy et al., SIGCOMM 2015 (Facebook Hadoop), as W4 of Homa, SIGCOMM 2018",
        reading: Reading::UpperStep,
        text: include_str!("tables/homa_w4_fb_hadoop.csv"),
    },
    Published {
        name: "homa_w5_dctcp_websearch",
        aliases: &["W5", "web search"],
        source: "Alizadeh et al., DCTCP, SIGCOMM 2010 (web search), as W5 of Homa, SIGCOMM 2018",
        reading: Reading::UpperStep,
        text: include_str!("tables/homa_w5_dctcp_websearch.csv"),
    },
    Published {
        name: "fb2015_web_server_intra_cluster",
        aliases: &["FB web"],
        source: "Roy et al., SIGCOMM 2015 (web servers, intra-cluster)",
        reading: Reading::UpperStep,
        text: include_str!("tables/fb2015_web_server_intra_cluster.csv"),
    },
    Published {
        name: "fb2015_cache_follower_intra_cluster",
        aliases: &["FB cache"],
        source: "Roy et al., SIGCOMM 2015 (cache followers, intra-cluster)",
        reading: Reading::UpperStep,
        text: include_str!("tables/fb2015_cache_follower_intra_cluster.csv"),
    },
    Published {
        name: "dctcp_websearch",
        aliases: &["web search"],
        source: "Alizadeh et al., DCTCP, SIGCOMM 2010; table form of pFabric, SIGCOMM 2013",
        reading: Reading::Linear,
        text: include_str!("tables/dctcp_websearch.csv"),
    },
    Published {
        name: "vl2_datamining",
        aliases: &["data mining"],
        source: "Greenberg et al., VL2, SIGCOMM 2009; table form of pFabric, SIGCOMM 2013",
        reading: Reading::Linear,
        text: include_str!("tables/vl2_datamining.csv"),
    },
    Published {
        name: "pfabric_datamining_packets1460",
        aliases: &["data mining (packets)"],
        source: "VL2 data mining in whole 1460 B packets, as simulated in pFabric (2013) / pHost (CoNEXT 2015)",
        reading: Reading::Linear,
        text: include_str!("tables/pfabric_datamining_packets1460.csv"),
    },
    Published {
        name: "pfabric_imc10_aditya_packets1460",
        aliases: &["IMC10"],
        source: "Benson et al., IMC 2010, in whole 1460 B packets, as simulated in pHost (CoNEXT 2015)",
        reading: Reading::Linear,
        text: include_str!("tables/pfabric_imc10_aditya_packets1460.csv"),
    },
    Published {
        name: "fb_hadoop_hpcc",
        aliases: &["FB_Hadoop"],
        source: "Roy et al., SIGCOMM 2015 (Hadoop), coarse table of HPCC, SIGCOMM 2019",
        reading: Reading::Linear,
        text: include_str!("tables/fb_hadoop_hpcc.csv"),
    },
    Published {
        name: "alibaba_storage_2019",
        aliases: &["AliStorage2019"],
        source: "Alibaba storage 2019, released with HPCC, SIGCOMM 2019",
        reading: Reading::Linear,
        text: include_str!("tables/alibaba_storage_2019.csv"),
    },
    Published {
        name: "google_rpc_2008",
        aliases: &["GoogleRPC2008"],
        source: "Google RPC sizes (before 2008); same points as W3, with a (0,0) point and linear reading",
        reading: Reading::Linear,
        text: include_str!("tables/google_rpc_2008.csv"),
    },
    Published {
        name: "opera_websearch_digitised",
        aliases: &["web search (digitised)"],
        source: "DCTCP web search, digitised for Opera, NSDI 2020",
        reading: Reading::Linear,
        text: include_str!("tables/opera_websearch_digitised.csv"),
    },
    Published {
        name: "opera_datamining_digitised",
        aliases: &["data mining (digitised)"],
        source: "VL2 data mining, digitised for Opera, NSDI 2020",
        reading: Reading::Linear,
        text: include_str!("tables/opera_datamining_digitised.csv"),
    },
    Published {
        name: "opera_fb_hadoop_inter_rack_digitised",
        aliases: &["Hadoop inter-rack"],
        source: "Roy et al., SIGCOMM 2015 Hadoop inter-rack flows, digitised for Opera, NSDI 2020",
        reading: Reading::Linear,
        text: include_str!("tables/opera_fb_hadoop_inter_rack_digitised.csv"),
    },
    Published {
        name: "solar_storage_2022",
        aliases: &["Solar2022"],
        source: "Alibaba Solar storage, SIGCOMM 2022, released with ConWeave, SIGCOMM 2023",
        reading: Reading::Linear,
        text: include_str!("tables/solar_storage_2022.csv"),
    },
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The fields of a line of comma-separated values, some in double quotes.
    fn fields(line: &str) -> Vec<String> {
        let (mut all, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => all.push(String::new()),
                _ => all.last_mut().unwrap().push(c),
            }
        }
        all
    }

    /// The index prints five to six significant digits.
    #[track_caller]
    fn check_printed(what: &str, found: f64, printed: &str) {
        let printed: f64 = printed.parse().unwrap();
        assert!((found - printed).abs() <= 6e-5 * printed, "{what}: {found}, index says {printed}");
    }

    #[test]
    fn every_published_table_is_as_its_index_says() {
        let index = include_str!("tables/index.csv");
        assert_eq!(index.lines().count() - 1, PUBLISHED.len());
        for ((line, published), row) in index.lines().skip(1).zip(PUBLISHED).zip(catalogue()) {
            let field = fields(line);
            let name = published.name;
            assert_eq!(field[0], format!("{name}.csv"));
            assert_eq!(field[1], published.aliases.join("; "));
            assert_eq!(field[3], published.reading.name());
            assert_eq!(field[11], published.source);
            let linear = published.table(Reading::Linear);
            assert_eq!(linear.points.len(), field[2].parse::<usize>().unwrap(), "{name}");
            check_printed(name, row.mean_bytes, &field[4]);
            check_printed(name, published.table(Reading::LowerStep).mean(), &field[5]);
            check_printed(name, linear.mean(), &field[6]);
            check_printed(name, published.table(Reading::UpperStep).mean(), &field[7]);
            check_printed(name, row.p50_bytes, &field[8]);
            check_printed(name, row.p99_bytes, &field[9]);
            check_printed(name, row.max_bytes as f64, &field[10]);
        }
    }

    #[test]
    fn draws_have_the_mean_of_the_table_in_each_reading() {
        // Bound: four standard errors of 200,000 draws, and half a byte for rounding; fixed seed.
        for published in PUBLISHED {
            for reading in [Reading::LowerStep, Reading::Linear, Reading::UpperStep] {
                let table = published.table(reading);
                let mut stream = Stream::new(3, "test", 0);
                let draws: Vec<f64> =
                    (0..200_000).map(|_| table.draw(&mut stream).get() as f64).collect();
                let count = draws.len() as f64;
                let mean = draws.iter().sum::<f64>() / count;
                let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                let bound = 4.0 * (variance / count).sqrt() + 0.5;
                let expected = table.mean();
                let name = published.name;
                assert!((mean - expected).abs() < bound, "{name} {reading:?}: {mean} {expected}");
                assert!(draws.iter().all(|&x| x >= 1.0 && x <= table.max().get() as f64));
            }
        }
    }

    #[test]
    fn a_table_in_three_readings() {
        let table = |reading| {
            SizeTable::new(vec![(100, 0.2), (200, 0.2), (200, 0.6), (1000, 1.0)], reading).unwrap()
        };
        let at = |reading, p| table(reading).quantile(p);
        for (p, lower, linear, upper) in [
            (0.1, 100.0, 100.0, 100.0),
            (0.2, 100.0, 100.0, 100.0),
            (0.4, 200.0, 200.0, 200.0),
            (0.8, 200.0, 600.0, 1000.0),
            (1.0, 200.0, 1000.0, 1000.0),
        ] {
            assert_eq!(at(Reading::LowerStep, p), lower, "lower {p}");
            assert!((at(Reading::Linear, p) - linear).abs() < 1e-9, "linear {p}");
            assert_eq!(at(Reading::UpperStep, p), upper, "upper {p}");
        }
        assert!((table(Reading::LowerStep).mean() - 180.0).abs() < 1e-9);
        assert!((table(Reading::Linear).mean() - 340.0).abs() < 1e-9);
        assert!((table(Reading::UpperStep).mean() - 500.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_mean_is_the_integral_of_the_quantiles(
            steps in prop::collection::vec((0u64..1000, 1u32..50), 1..20),
        ) {
            let total: u32 = steps.iter().map(|s| s.1).sum();
            let (mut size, mut share) = (1, 0);
            let points: Vec<_> = steps.iter().map(|step| {
                size += step.0;
                share += step.1;
                (size, f64::from(share) / f64::from(total))
            }).collect();
            for reading in [Reading::LowerStep, Reading::Linear, Reading::UpperStep] {
                let table = SizeTable::new(points.clone(), reading).unwrap();
                // The midpoint rule with cells of 1 / (50 total) never straddles a point of the table.
                let cells = total * 50;
                let integral: f64 = (0..cells)
                    .map(|cell| table.quantile((f64::from(cell) + 0.5) / f64::from(cells)))
                    .sum::<f64>() / f64::from(cells);
                prop_assert!((integral - table.mean()).abs() < 1e-6 * integral);
            }
        }
    }

    #[test]
    fn names_are_found_however_they_are_written_and_doubt_is_not_resolved() {
        let names = |text: &str| -> Vec<_> {
            Published::named(text).iter().map(|table| table.name).collect()
        };
        assert_eq!(names("W4"), ["homa_w4_fb_hadoop"]);
        assert_eq!(names("homa-w4 FB hadoop"), ["homa_w4_fb_hadoop"]);
        assert_eq!(names("dctcp_websearch"), ["dctcp_websearch"]);
        assert_eq!(names("Web Search"), ["homa_w5_dctcp_websearch", "dctcp_websearch"]);
        assert!(names("nothing").is_empty());
    }

    #[track_caller]
    fn check_refused(points: &[(u64, f64)], message: &str) {
        assert_eq!(SizeTable::new(points.to_vec(), Reading::Linear).unwrap_err(), message);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        check_refused(&[], "a size table needs at least one point");
        check_refused(&[(1, -0.1), (2, 1.0)], "the share -0.1 of point 0 is not between 0 and 1");
        check_refused(&[(1, f64::NAN)], "the share NaN of point 0 is not between 0 and 1");
        check_refused(
            &[(5, 0.5), (4, 1.0)],
            "sizes and shares must not decrease, but point 1 does",
        );
        check_refused(&[(1, 0.9)], "the last share must be exactly 1, not 0.9");
        check_refused(&[(0, 1.0)], "the largest size is 0 bytes");
    }
}
